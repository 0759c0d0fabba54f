"""The page of a person's Slurm accounts."""

from __future__ import annotations

from portal.core.cluster.limits import Association, Limits, Minutes
from portal.web.pages.account.slurm_accounts import account_views, fair_share_words, reset_words
from tests.fakes import World
from tests.unit.web.conftest import Browser

LIMITS = Limits(
    default_accounts={"alice": "research"},
    associations=(
        Association(account="research", description="research"),
        Association(
            account="crystals",
            description="Crystal <growth>",
            total=Minutes(cpus=6000),
            used=Minutes(cpus=1500),
        ),
        Association("crystals", "alice", fair_share=0.9, total=Minutes(gpus=60)),
        Association("research", "alice"),
        Association("secret", "bob", total=Minutes(cpus=1)),
    ),
)


def test_the_default_account_is_first_and_each_says_what_is_left() -> None:
    research, crystals = account_views("alice", LIMITS)
    assert (research.name, research.default, research.title) == ("research", True, "")
    assert [(one.used, one.left, one.total) for one in crystals.of_all] == [(25.0, 75.0, 100.0)]
    assert [(one.used, one.left, one.total) for one in crystals.own] == [(None, None, 1.0)]


def test_nothing_is_left_of_what_is_overdrawn() -> None:
    over = Association(account="a", total=Minutes(cpus=60), used=Minutes(cpus=90))
    limits = Limits(associations=(over, Association("a", "alice")))
    assert account_views("alice", limits)[0].of_all[0].left == 0


def test_words() -> None:
    assert "sooner" in fair_share_words(1.0)
    assert "others" in fair_share_words(0.0)
    assert fair_share_words(None) == ""
    assert "every month" in reset_words(Limits(usage_reset="MONTHLY"))
    assert "after 7 days" in reset_words(Limits(usage_reset="NONE", decay_minutes=7 * 1440))
    assert "administrator" in reset_words(Limits())


def test_the_page_shows_the_users_own_accounts_alone(world: World, alice: Browser) -> None:
    assert "have not been read yet" in alice.get("/account/slurm").text
    world.status.save_limits(LIMITS)
    page = alice.get("/account/slurm").text
    assert "Crystal &lt;growth&gt;" in page
    assert "75.0" in page
    assert "secret" not in page


def test_a_cluster_without_accounting_says_so(world: World, alice: Browser) -> None:
    world.status.save_limits(Limits(accounting=False))
    assert "no accounting" in alice.get("/account/slurm").text
