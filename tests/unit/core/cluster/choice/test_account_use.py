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
    assert science.forgotten == "It is set back on the first of each month."


def test_an_administrator_sees_all() -> None:
    found = [one.account for one in account_use("root", LIMITS, everybody=True)]
    assert found == ["bio", "physics", "root", "science"]


def test_what_is_left_counts_the_accounts_above() -> None:
    assert remaining("physics", LIMITS) == "12 of 1000 core hours left"
    assert remaining("bio", LIMITS) == ""
