"""Who sees an image: the four rules, and how they are said."""

from __future__ import annotations

import pytest

from portal.core.admin.descriptions import describe_rule, say_rule
from portal.core.admin.images import ImageRule, SeenBy


def rule(seen_by: SeenBy, accounts: tuple[str, ...] = (), users: tuple[str, ...] = ()) -> ImageRule:
    """A rule of one image."""
    names = {"accounts": accounts, "users": users}
    return ImageRule(environment="busybox", version="1.37", seen_by=seen_by, **names)


@pytest.mark.parametrize(
    ("found", "alice", "bob"),
    [
        (rule("everybody"), True, True),
        (rule("nobody"), False, False),
        (rule("some", users=("alice",)), True, False),
        (rule("except", users=("bob",)), True, False),
        (rule("except", accounts=("lab",)), False, False),
        (rule("some", accounts=("lab",)), True, True),
    ],
)
def test_who_sees_it(found: ImageRule, alice: bool, bob: bool) -> None:
    assert found.permits("alice", ["lab"]) is alice
    assert found.permits("bob", ["lab"]) is bob


def test_rules_are_said_in_words() -> None:
    named = rule("some", users=("alice",))
    assert say_rule("BusyBox 1.37", named) == "BusyBox 1.37 is now seen by alice"
    left_out = rule("except", ("lab",), ("bob", "eve"))
    said = "BusyBox 1.37 is now seen by everybody except account lab, bob and eve"
    assert say_rule("BusyBox 1.37", left_out) == said
    assert describe_rule(left_out) == "everybody except accounts lab; users bob, eve"
    assert say_rule("BusyBox 1.37", rule("nobody")) == "BusyBox 1.37 is now seen by nobody"
