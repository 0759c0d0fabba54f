"""Fair shares of an account's members."""

from __future__ import annotations

from portal.core.cluster.limits import Association, Limits
from portal.web.pages.admin.members import fair_shares


def test_the_lowest_and_the_highest_of_an_account() -> None:
    limits = Limits(
        associations=(
            Association("research", fair_share=0.9),
            Association("research", "alice", fair_share=0.25),
            Association("research", "bob", fair_share=0.5),
            Association("teaching", "alice", fair_share=1.0),
            Association("empty"),
        )
    )
    assert fair_shares(limits) == {"research": "0.25 to 0.5", "teaching": "1"}
    assert fair_shares(None) == {}
