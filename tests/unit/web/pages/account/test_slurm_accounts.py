"""The page of a person's Slurm accounts."""

from __future__ import annotations

from flask import Flask

from portal.core.cluster.choice.account_use import account_use
from portal.core.cluster.limits import Association, Limits, Minutes
from portal.web.pages.account.slurm_accounts import fair_share_words, in_order
from tests.support.fakes import World
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
        Association("secret"),
        Association("secret", "bob", total=Minutes(cpus=1)),
    ),
)


def test_the_default_account_is_first_and_those_above_come_last() -> None:
    above = Association(account="all", total=Minutes(cpus=60))
    unlimited = Association(account="root")
    crystals = Association(account="crystals", parent="all")
    rows = (above, unlimited, crystals, *(one for one in LIMITS.associations if one.user))
    limits = Limits(default_accounts={"alice": "research"}, associations=rows)
    found = in_order(account_use("alice", limits))
    assert [one.account for one in found] == ["research", "crystals", "all"]
    assert [one.account for one in in_order(account_use("root", limits))] == []


def test_words() -> None:
    assert "sooner" in fair_share_words(1.0)
    assert "others" in fair_share_words(0.0)
    assert fair_share_words(None) == ""


def test_an_administrator_sees_the_accounts_of_everybody(
    world: World, alice: Browser, app: Flask
) -> None:
    world.status.save_limits(LIMITS)
    page = Browser(app).log_in("admin").get("/account/slurm?everybody=true").text
    assert 'data-account="crystals"' in page
    assert 'data-account="secret"' in page
    assert 'data-account="secret"' not in alice.get("/account/slurm?everybody=true").text


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
