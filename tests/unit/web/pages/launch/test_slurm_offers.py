"""What is free, and what is in effect, with the chosen account and QOS."""

from __future__ import annotations

import re
from dataclasses import replace

from portal.core.cluster.limits import Limits, PartitionAccess, Tres
from tests.support.fakes import World
from tests.support.launch_pages import HTMX, menu_values, two_accounts
from tests.unit.web.conftest import Browser


def known(world: World) -> Limits:
    """What the portal has read of two accounts."""
    two_accounts(world)
    found = world.status.reported().limits
    assert found is not None
    return found


def choice(browser: Browser, **fields: str) -> str:
    """The resources' step with these choices."""
    return browser.post("/sessions/new/choice", fields, headers=HTMX).text


def test_an_account_that_slurm_needs_named_is_chosen(world: World, alice: Browser) -> None:
    limits = known(world)
    closed = PartitionAccess("main", accounts=("crystals",))
    world.status.save_limits(replace(limits, partitions=(closed,)))
    assert menu_values(choice(alice), "account") == ["crystals"]


def test_what_is_free_follows_the_qos(world: World, alice: Browser) -> None:
    limits = known(world)
    urgent = [
        replace(one, user=Tres(cpus=1, memory_mb=1024)) if one.name == "urgent" else one
        for one in limits.qos
    ]
    world.status.save_limits(replace(limits, qos=tuple(urgent)))
    assert "free now: 1 core," in choice(alice, account="crystals", qos="urgent")
    assert "free now: 1 core," not in choice(alice, account="crystals", qos="spare")
    assert "free now: 1 core," not in choice(alice)


def test_the_composer_proposes_what_any_account_may_use(world: World, alice: Browser) -> None:
    known(world)
    page = alice.get("/jobs/new").text
    for name in ("research", "crystals", "normal", "urgent", "spare"):
        assert f'<option value="{name}">' in page
    assert 'name="account" id="field-account"' in page
    assert 'value="crystals" name=' not in page  # as in the script, if nothing is chosen


def qos_offers(page: str) -> list[str]:
    """What is proposed for the QOS."""
    offers = re.search(r'<datalist id="offers-qos">(.*?)</datalist>', page, re.DOTALL)
    return re.findall(r'value="([^"]*)"', offers[1]) if offers else []


def test_the_composers_qos_follow_the_account(world: World, alice: Browser) -> None:
    known(world)
    every = qos_offers(alice.get("/jobs/new").text)
    form = {"source": "editor", "script": "#!/bin/sh\n"}
    asked = [
        qos_offers(alice.post("/jobs/new/again", form | {"account": account}).text)
        for account in ("research", "crystals", "nobodys")
    ]
    assert asked == [["normal"], ["urgent", "spare"], every]
    # The script of the page narrows them without the server, by what it was told.
    page = alice.get("/jobs/new").text
    assert '<option value="urgent" data-accounts="crystals">' in page
    assert '<option value="normal" data-accounts="research">' in page


def test_a_refused_pair_is_named_by_its_field(world: World, alice: Browser) -> None:
    known(world)
    form = {"source": "editor", "script": "#!/bin/sh\n", "account": "research", "key": "k"}
    answer = alice.post("/jobs/new", form | {"qos": "urgent"})
    assert answer.status_code == 422
    assert world.slurm.submitted == []
    wrong = re.search(r'id="error-qos">.*?<span>(.*?)</span>', answer.text, re.DOTALL)
    assert wrong and wrong[1] == "Account research may not use QOS urgent"
    assert alice.post("/jobs/new", form | {"qos": "normal"}).status_code == 303
