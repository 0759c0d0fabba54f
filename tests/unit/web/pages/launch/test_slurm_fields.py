"""The wizard's fields for account, QOS, reservation, features and whole node."""

from __future__ import annotations

import re

from portal.core.cluster.choice.offers import LaunchOptions, Offer
from portal.core.slurm_options import SlurmOptions
from portal.web.pages.launch.slurm_fields import chosen_options, slurm_fields
from tests.support.fakes import World
from tests.support.launch_pages import HTMX, WIZARD_FORM, menu_values, read_slurm, two_accounts
from tests.unit.web.conftest import Browser

SEVERAL = LaunchOptions(
    accounts=(
        Offer("research", "research", default=True),
        Offer("crystals", "Crystal growth", "10 core hours left"),
    ),
    qos=(Offer("normal", default=True),),
)


def test_what_there_is_one_of_is_not_asked() -> None:
    fields = slurm_fields(SEVERAL, {}, {})
    assert [menu.name for menu in fields.menus] == ["account"]
    assert [(item.value, item.text, item.chosen) for item in fields.menus[0].items] == [
        ("", "research (default)", True),
        ("crystals", "crystals: Crystal growth", False),
    ]
    assert not slurm_fields(LaunchOptions(), {}, {}).shown


def test_what_was_entered_or_refused_is_shown_though_it_is_not_offered() -> None:
    fields = slurm_fields(SEVERAL, {"account": "old"}, {"qos": "wrong", "constraint": "wrong"})
    assert [menu.name for menu in fields.menus] == ["account", "qos"]
    assert fields.constraint
    assert fields.menus[0].items[-1].value == "old"
    assert fields.menus[0].items[-1].chosen


def test_the_note_is_that_of_the_chosen_one() -> None:
    assert slurm_fields(SEVERAL, {"account": "crystals"}, {}).menus[0].note == "10 core hours left"
    assert slurm_fields(SEVERAL, {}, {}).menus[0].note == ""


def test_the_entered_options() -> None:
    values = {"account": "crystals", "qos": "urgent", "exclusive": "on"}
    assert chosen_options(values) == SlurmOptions("crystals", "urgent", exclusive=True)


def test_the_page_offers_the_accounts_and_their_qos(world: World, alice: Browser) -> None:
    two_accounts(world)
    page = alice.get("/sessions/new").text
    assert menu_values(page, "account") == ["", "crystals"]
    assert menu_values(page, "qos") == []
    part = alice.post(
        "/sessions/new/choice", WIZARD_FORM | {"account": "crystals"}, headers=HTMX
    ).text
    assert menu_values(part, "qos") == ["", "spare"]
    assert "<form" not in part


def test_the_choice_is_launched_shown_and_proposed_again(world: World, alice: Browser) -> None:
    two_accounts(world)
    sent = WIZARD_FORM | {"account": "crystals", "qos": "spare", "exclusive": "on"}
    review = alice.post("/sessions/new/review", sent, headers=HTMX).text
    assert "<dt>Account</dt><dd>crystals</dd>" in review
    assert "<dt>Whole node</dt>" in review
    alice.post("/sessions", sent, headers=HTMX)
    made = world.store.live()[0]
    assert made.slurm == SlurmOptions("crystals", "spare", exclusive=True)
    assert "<dt>QOS</dt><dd>spare</dd>" in alice.get(f"/sessions/{made.id}").text
    again = alice.get("/sessions/new").text
    assert '<option value="crystals" selected>' in again
    assert '<option value="spare" selected>' in again
    copy = alice.get(f"/sessions/new?from={made.id}").text
    assert re.search(r'type="checkbox"[^>]*checked[^>]*name="exclusive"', copy)


def test_an_account_that_is_gone_is_not_proposed_again(world: World, alice: Browser) -> None:
    two_accounts(world)
    alice.post("/sessions", WIZARD_FORM | {"account": "crystals"}, headers=HTMX)
    read_slurm(world)
    assert 'value="crystals"' not in alice.get("/sessions/new").text


def test_a_refusal_is_at_its_field(world: World, alice: Browser) -> None:
    two_accounts(world)
    wrong = WIZARD_FORM | {"account": "a b", "exclusive": "perhaps"}
    found = alice.post("/sessions/new/check", wrong, headers=HTMX).get_json()["errors"]
    assert set(found) == {"account", "exclusive"}
    page = alice.post("/sessions", wrong).text
    assert re.search(r'<select[^>]*name="account"[^>]*aria-invalid="true"', page)
    assert world.store.live() == []


def test_a_preset_keeps_the_choice(world: World, alice: Browser) -> None:
    two_accounts(world)
    sent = WIZARD_FORM | {
        "account": "crystals",
        "qos": "spare",
        "preset": "Crystals",
        "exclusive": "on",
    }
    alice.post("/presets", sent)
    assert "account crystals · QOS spare · whole node" in alice.get("/presets").text
    again = alice.get("/sessions/new?preset=Crystals").text
    assert '<option value="spare" selected>' in again


def test_one_account_that_is_not_slurms_default_is_named() -> None:
    offered = LaunchOptions(accounts=(Offer("teaching"),), qos=(Offer("normal", default=True),))
    (account,) = slurm_fields(offered, {"account": "teaching"}, {}).menus
    assert [(item.value, item.chosen) for item in account.items] == [("teaching", True)]
    (account,) = slurm_fields(offered, {}, {}).menus
    assert [item.value for item in account.items] == ["teaching"]
