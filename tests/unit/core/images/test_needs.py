"""What a build needs, and what else works."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.core.images.names import ImageError, ImageName
from portal.core.images.needs import PROGRAMS, Machine, fakeroot, missing
from portal.core.images.recipe import Sources

NAME = ImageName("r", "4.5")
RECIPE = Sources(NAME, "Bootstrap: localimage\nFrom: {{ base }}\n%post\n", suite="trixie")
ADDRESS = Sources(NAME, address="docker://registry.example.org/tool:1")
USER = Machine(
    programs=frozenset(PROGRAMS) - {"fakeroot"}, user="ann", root=False, all_capabilities=False,
    namespaces=True, architecture="x86_64", ids=True,
)  # fmt: skip


def without(*programs: str) -> Machine:
    return replace(USER, programs=USER.programs - set(programs))


def test_nothing_is_missing_on_a_complete_machine() -> None:
    assert missing(RECIPE, USER, cached=False) == []
    assert missing(ADDRESS, without("debootstrap", "dnf"), cached=False) == []


def test_debootstrap_is_missed_only_without_a_base() -> None:
    machine = without("debootstrap")
    (problem,) = missing(RECIPE, machine, cached=False)
    assert problem.startswith("debootstrap is not installed")
    assert "--base docker://debian:trixie-slim" in problem
    assert "--on-cluster" in problem
    assert missing(RECIPE, machine, cached=True) == []
    assert missing(replace(RECIPE, base="docker://debian"), machine, cached=False) == []


def test_everything_that_is_missing_is_named_at_once() -> None:
    bare = replace(USER, programs=frozenset(), namespaces=False)
    problems = missing(RECIPE, bare, cached=False)
    assert [problem.split()[0] for problem in problems] == [
        "apptainer", "mksquashfs", "debootstrap", "unshare",
    ]  # fmt: skip
    (problem,) = missing(RECIPE, replace(USER, namespaces=False), cached=False)
    assert problem.startswith("ann may not create user namespaces")
    assert "user.max_user_namespaces" in problem


@pytest.mark.parametrize(
    ("agent", "program"), [("dnf", "dnf"), ("yum", "yum"), ("arch", "pacstrap")]
)
def test_the_program_of_a_bootstrap_is_named(agent: str, program: str) -> None:
    sources = Sources(NAME, f"Bootstrap: {agent}\n")
    (problem,) = missing(sources, without("dnf", "yum", "pacstrap"), cached=False)
    assert problem.startswith(
        f"not installed: {program}; the definition has `Bootstrap: {agent}`: install that; or start"
    )


def test_rpm_is_needed_beside_dnf() -> None:
    (problem,) = missing(
        Sources(NAME, "Bootstrap: dnf\n"), without("dnf", "yum", "rpm"), cached=False
    )
    assert problem.startswith("not installed: dnf, rpm;")
    (problem,) = missing(Sources(NAME, "Bootstrap: yum\n"), without("rpm"), cached=False)
    assert problem.startswith("not installed: rpm;")


def test_either_of_dnf_and_yum_will_do() -> None:
    assert missing(Sources(NAME, "Bootstrap: dnf\n"), without("dnf"), cached=False) == []


def test_fakeroot_is_chosen_where_it_is_possible() -> None:
    root = replace(USER, root=True, all_capabilities=True, ids=False)
    assert fakeroot(RECIPE, USER, None)
    assert not fakeroot(RECIPE, root, None)
    assert not fakeroot(RECIPE, replace(root, namespaces=False), None)
    assert fakeroot(ADDRESS, replace(USER, ids=False), None)


def test_without_ids_the_lines_to_add_are_told() -> None:
    with pytest.raises(ImageError) as caught:
        fakeroot(RECIPE, replace(USER, ids=False), None)
    text = str(caught.value)
    assert "`ann:100000:65536`" in text
    assert "`--from docker://…` needs neither" in text
    helped = replace(USER, ids=False, programs=USER.programs | {"fakeroot"})
    with pytest.raises(ImageError, match="no line for ann"):
        fakeroot(RECIPE, helped, None)
    assert fakeroot(Sources(NAME, "Bootstrap: docker\n%post\n"), helped, None)


def test_newuidmap_is_needed_for_ids() -> None:
    with pytest.raises(ImageError, match="newuidmap is not installed"):
        fakeroot(RECIPE, without("newuidmap"), None)
    # Root of a container lacks rights, too; root of a machine builds without ids.
    root = replace(without("newuidmap"), root=True)
    with pytest.raises(ImageError, match="which need it: install it; or build on another"):
        fakeroot(RECIPE, root, None)
    assert not fakeroot(RECIPE, replace(root, all_capabilities=True), None)


def test_ids_are_mapped_where_everything_for_that_is_there() -> None:
    assert USER.maps_ids
    assert not replace(USER, namespaces=False).maps_ids
    assert not replace(USER, ids=False).maps_ids
    assert not without("newuidmap").maps_ids


def test_without_unshare_namespaces_are_not_blamed() -> None:
    (problem,) = missing(RECIPE, replace(without("unshare"), namespaces=False), cached=True)
    assert problem.startswith("unshare is not installed (package util-linux)")


def test_no_fakeroot_is_refused_where_root_is_needed() -> None:
    with pytest.raises(ImageError, match="--no-fakeroot"):
        fakeroot(RECIPE, USER, requested=False)
    assert not fakeroot(ADDRESS, USER, requested=False)
