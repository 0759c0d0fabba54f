"""Administrators' decisions: visibility of images, and valid rules."""

from __future__ import annotations

import pytest

from portal.core.admin.etag import etag
from portal.core.admin.images import (
    ImageRequest,
    ImageRule,
    accounts_of,
    check_principals,
    visible_catalog,
)
from portal.core.admin.templates import TemplateRequest
from portal.core.cluster.gpu_offers import NO_GPUS
from portal.core.cluster.limits import Association, Limits
from portal.core.launch.request import parse_launch
from portal.core.launch.templates import Template
from portal.core.policy import decide
from portal.core.session.session import usual_shm
from portal.core.site_rules import SiteRules
from portal.core.validation import check
from portal.errors import InvalidRequest
from tests.support.fakes import CATALOG

LIMITS = Limits(
    enforced=("associations", "limits"),
    associations=(
        Association("root"),
        Association("physics", parent="root"),
        Association("optics", parent="physics"),
        Association("optics", "alice", parent=""),
        Association("law", parent="root"),
        Association("law", "bob"),
    ),
)


def rule(seen_by: str, **more: tuple[str, ...]) -> ImageRule:
    return ImageRule.model_validate(
        {"environment": "python", "version": "3.13", "seen_by": seen_by, **more}
    )


@pytest.mark.parametrize(
    ("found", "alice", "bob"),
    [
        (rule("everybody"), True, True),
        (rule("nobody"), False, False),
        (rule("nobody", users=("alice",)), False, False),
        (rule("some", users=("bob",)), False, True),
        (rule("some", accounts=("optics",)), True, False),
        (rule("some", accounts=("physics",)), True, False),
        (rule("some", accounts=("root",)), True, True),
        (rule("some", accounts=("law",), users=("alice",)), True, True),
        (rule("some", accounts=("alice",)), False, False),
    ],
)
def test_who_sees_an_image(found: ImageRule, alice: bool, bob: bool) -> None:
    for user, sees in (("alice", alice), ("bob", bob)):
        left = visible_catalog(user, CATALOG, [found], LIMITS)
        assert (left.image("python", "3.13") is not None) is sees
        assert left.image("python", "3.12") is not None
        assert left.apps == CATALOG.apps


def test_accounts_admit_nobody_before_slurm_was_read() -> None:
    assert accounts_of("alice", None) == frozenset()
    left = visible_catalog(
        "alice", CATALOG, [rule("some", accounts=("optics",), users=("bob",))], None
    )
    assert left.image("python", "3.13") is None


def test_cyclic_accounts_terminate() -> None:
    circle = Limits(
        associations=(
            Association("a", parent="b"),
            Association("b", parent="a"),
            Association("a", "alice"),
        )
    )
    assert accounts_of("alice", circle) == {"a", "b"}


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"seen_by": "some"}, "accounts"),
        ({"seen_by": "some", "accounts": ["chess"]}, "accounts"),
        ({"seen_by": "some", "users": ["mallory"]}, "users"),
        ({"seen_by": "friends"}, "seen_by"),
        ({"seen_by": "some", "users": ["a b"]}, "users.0"),
        ({"seen_by": "some", "users": "alice"}, "users"),
        ({"seen_by": "nobody", "who": 1}, "who"),
        ({}, "seen_by"),
    ],
)
def test_an_empty_rule_is_refused(data: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_principals(check(ImageRequest, data), LIMITS)
    assert [e.field for e in caught.value.errors] == [field]


def test_names_unknown_to_slurm_are_accepted() -> None:
    asked = check(ImageRequest, {"seen_by": "some", "users": ["mallory", "mallory"]})
    assert asked.users == ("mallory",)
    check_principals(asked, None)
    check_principals(asked, Limits())


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"title": ""}, "title"),
        ({"title": "x" * 61}, "title"),
        ({"title": "a\nb"}, "title"),
        ({"description": "a\0b"}, "description"),
        ({"description": "x" * 201}, "description"),
        ({"resources": {"cpus": 0, "memory": "1g"}}, "resources.cpus"),
        ({"resources": {"cpus": 1, "memory": "lots"}}, "resources.memory"),
        (
            {"resources": {"cpus": 1, "memory": "1g", "shared_memory": "2g"}},
            "resources.shared_memory",
        ),
        ({"resources": {"cpus": 1}}, "resources.memory"),
        ({"time_limit": 0}, "time_limit"),
        ({"time_limit": "soon"}, "time_limit"),
        ({"resource_group": "a,b"}, "resource_group"),
        ({"place": -1}, "place"),
        ({"gpus": 1}, "gpus"),
    ],
)
def test_a_template_is_checked_as_a_launch_is(changes: dict[str, object], field: str) -> None:
    whole = {"title": "Small", "resources": {"cpus": 1, "memory": "2g"}}
    with pytest.raises(InvalidRequest) as caught:
        check(TemplateRequest, whole | changes)
    assert [e.field for e in caught.value.errors] == [field]


def test_the_etag_changes_with_edits_and_not_with_the_order() -> None:
    template = Template(name="small", title="Small", cpus=1, memory_mb=2048)
    assert etag(None) == ""
    assert etag(template) == etag(template.model_copy(update={"place": 4}))
    assert etag(template) != etag(template.model_copy(update={"cpus": 2}))


def test_the_cap_limits_requests_and_the_default_share() -> None:
    caps = SiteRules(max_shared_memory_mb=512)

    def ask(**resources: str) -> str:
        data = {"environment": "python", "resources": resources}
        return decide(parse_launch(data), CATALOG, None, caps, NO_GPUS).image.version

    assert ask(memory="4g") == "3.13"
    assert ask(memory="4g", shared_memory="512m") == "3.13"
    with pytest.raises(InvalidRequest) as caught:
        ask(memory="4g", shared_memory="513m")
    (error,) = caught.value.errors
    assert error.field == "resources.shared_memory"
    assert error.message == "513 MB is too much: an administrator allows 0.5 GB at most"
    assert usual_shm(4096, None) == 2048
    assert usual_shm(4096, 512) == 512
    assert usual_shm(600, 512) == 300
