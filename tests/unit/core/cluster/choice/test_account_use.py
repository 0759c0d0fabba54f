"""Limits in time of accounts."""

from __future__ import annotations

from portal.core.cluster.choice.account_use import account_use, remaining
from portal.core.cluster.limits import Association, Limits, Minutes

LIMITS = Limits(
    default_accounts={"alice": "physics"},
    associations=(
        Association("physics", "alice", fair_share=0.5),
        Association("physics", parent="science", description="Physics"),
        Association("science", parent="root", total=Minutes(60_000), used=Minutes(59_280)),
        Association("bio", parent="root"),
        Association("root"),
    ),
    usage_reset="MONTHLY",
)


def test_a_member_sees_the_own_accounts_and_those_above() -> None:
    physics, science = account_use("alice", LIMITS)
    assert (physics.account, physics.member, physics.default) == ("physics", True, True)
    assert (physics.fair_share, physics.budgets) == (0.5, ())
    assert (science.account, science.member) == ("science", False)
    assert science.budgets[0].words == "12 of 1000 core hours left"
    assert science.resets == "It is set back on the first of each month."


def test_an_administrator_sees_all() -> None:
    found = [one.account for one in account_use("root", LIMITS, everybody=True)]
    assert found == ["bio", "physics", "root", "science"]


def test_what_is_not_known_to_be_used_is_not_said_to_be_left() -> None:
    rows = (
        Association("bio", total=Minutes(cpus=600, gpus=60), used=Minutes(cpus=900)),
        Association("bio", "bob", total=Minutes(cpus=60), used=Minutes(cpus=30)),
    )
    limits = Limits(associations=rows, decay_minutes=7 * 1440)
    (bio,) = account_use("bob", limits)
    assert [(one.resource, one.used, one.left) for one in bio.budgets] == [
        ("cpus", 15.0, 0.0),
        ("gpus", None, None),
    ]
    assert [(one.resource, one.left) for one in bio.own_budgets] == [("cpus", 0.5)]
    assert bio.resets == "Half of it is forgotten every 7 days."
    assert remaining("bio", limits) == "0 of 10 core hours left, 1 GPU hours at most"


def test_what_is_left_counts_the_accounts_above() -> None:
    assert remaining("physics", LIMITS) == "12 of 1000 core hours left"
    assert remaining("bio", LIMITS) == ""
