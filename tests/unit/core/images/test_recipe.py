"""What an image is built from."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest

from portal.core.images.names import ImageError, ImageName
from portal.core.images.recipe import (
    Sources,
    check_sources,
    described,
    read_arguments,
    read_suite,
)

NAME = ImageName("r", "4.5")
DEFINITION = "Bootstrap: localimage\nFrom: {{ base }}\n%post\n  true\n"
SOURCES = Sources(NAME, DEFINITION, suite="trixie", files={"image.def": b"x", "image.toml": b"a"})


def test_what_the_definition_says() -> None:
    found = Sources(NAME, "bootstrap: docker\nfrom: debian:13\n%POST\n\nBootstrap: scratch\n")
    assert found.agents == ("docker", "scratch")
    assert found.origin == "docker: debian:13"
    assert found.runs_commands
    assert SOURCES.origin == "Debian trixie"
    plain = Sources(NAME, address="docker://registry.example.org/tool:1")
    assert (plain.agents, plain.runs_commands) == (("docker",), False)


def test_titles_and_tests_do_not_change_the_digest_and_all_else_does() -> None:
    other = replace(SOURCES, files={"image.def": b"x", "image.toml": b"b", "test.sh": b"c"})
    assert other.digest == SOURCES.digest
    changes = [
        {"files": {"image.def": b"y"}}, {"suite": "forky"}, {"arguments": {"gpu": "1"}},
        {"definition": "Bootstrap: scratch"}, {"base": "docker://debian"},
    ]  # fmt: skip
    assert len({SOURCES.digest, *(replace(SOURCES, **c).digest for c in changes)}) == 6  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sources", "words"),
    [
        (Sources(NAME, "From: x"), "no line `Bootstrap:`"),
        (Sources(NAME, "Bootstrap: podman"), "no `Bootstrap: podman`"),
        (Sources(NAME, DEFINITION), "the file `base`"),
        (Sources(NAME, address="tool:1"), "docker://registry.example.org/team/tool:1.2"),
        (Sources(NAME, address="docker:// x"), "--from docker:// x"),
    ],
)
def test_what_cannot_be_built_is_named(sources: Sources, words: str) -> None:
    with pytest.raises(ImageError) as caught:
        check_sources(sources)
    assert words in str(caught.value)


def test_sources_that_can_be_built() -> None:
    check_sources(SOURCES)
    check_sources(Sources(NAME, address="oci-archive:/tmp/tool.tar"))


def test_arguments_are_read() -> None:
    assert read_arguments(["gpu=1", "url=a=b", "empty="]) == {"gpu": "1", "url": "a=b", "empty": ""}
    for text in ("gpu", "=1", "a b=1"):
        with pytest.raises(ImageError, match="write NAME=VALUE"):
            read_arguments([text])
    with pytest.raises(ImageError, match="sets this itself"):
        read_arguments(["base=/"])


def test_a_base_names_one_release() -> None:
    assert read_suite("trixie\n", "base") == "trixie"
    for text in ("", "trixie sid", "../x", "13"):
        with pytest.raises(ImageError, match="one Debian release"):
            read_suite(text, "base")


def test_a_description_survives_any_title() -> None:
    text = described('A "quoted" \\ title ü', "")
    assert tomllib.loads(text) == {"title": 'A "quoted" \\ title ü'}
    assert tomllib.loads(described("a", "b")) == {"title": "a", "description": "b"}
