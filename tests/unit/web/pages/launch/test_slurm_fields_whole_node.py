"""The box for the whole node: a template says how it is at first, the person has the last word."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from portal.core.launch.templates import Template
from tests.support.fakes import World
from tests.support.launch_pages import HTMX, WIZARD_FORM, two_accounts
from tests.unit.web.conftest import Browser

WHOLE = Template(name="whole", title="Whole node", cpus=1, memory_mb=600, exclusive=True)
SMALL = Template(name="small", title="Small", cpus=1, memory_mb=600)
SIZED = {name: value for name, value in WIZARD_FORM.items() if not name.startswith("resources.")}


@pytest.fixture(autouse=True)
def templates(world: World) -> None:
    """Two templates, the first of which is for a whole node."""
    two_accounts(world)
    world.store_templates(WHOLE, SMALL)


def box(page: str) -> tuple[bool, str]:
    """Whether the box is ticked, and the template that it was shown for."""
    found = re.search(r'<input type="checkbox"([^>]*) name="exclusive"', page)
    shown_for = re.search(r'name="exclusive_of" value="([^"]*)"', page)
    assert found and shown_for
    return " checked" in found[1], shown_for[1]


def launched(world: World, browser: Browser, **fields: str) -> bool:
    """Whether a session for a whole node is launched with these fields."""
    answer = browser.post("/sessions", SIZED | {"confirmed": "yes", **fields})
    assert answer.status_code == 303, answer.text
    return world.store.live()[-1].exclusive


def test_a_new_form_shows_what_the_proposed_template_says(alice: Browser) -> None:
    assert box(alice.get("/sessions/new").text) == (True, "whole")


def test_unticked_it_undoes_what_the_template_says(world: World, alice: Browser) -> None:
    fields = {"template": "whole", "exclusive_of": "whole"}
    assert not launched(world, alice, **fields)


def test_ticked_it_stays(world: World, alice: Browser) -> None:
    fields = {"template": "whole", "exclusive_of": "whole", "exclusive": "on"}
    assert launched(world, alice, **fields)


def test_a_template_for_which_the_box_was_not_shown_counts_as_it_is(
    world: World, alice: Browser
) -> None:
    """Without the page's script, the box does not follow the choice of a template."""
    assert launched(world, alice, template="whole", exclusive_of="small")


def test_another_templates_box_can_be_ticked(world: World, alice: Browser) -> None:
    assert launched(world, alice, template="small", exclusive_of="small", exclusive="on")


def test_without_a_template_an_unticked_box_is_no_whole_node(world: World, alice: Browser) -> None:
    answer = alice.post("/sessions", WIZARD_FORM | {"confirmed": "yes", "exclusive_of": ""})
    assert answer.status_code == 303
    assert not world.store.live()[-1].exclusive


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"template": "whole", "exclusive_of": "whole"}, (False, "whole")),
        ({"template": "whole", "exclusive_of": "whole", "exclusive": "on"}, (True, "whole")),
        ({"template": "whole", "exclusive_of": "small"}, (True, "whole")),
        ({"template": "small", "exclusive_of": "whole", "exclusive": "on"}, (True, "small")),
        ({"template": "small", "exclusive_of": "small"}, (False, "small")),
    ],
)
def test_what_was_chosen_is_shown_again(
    alice: Browser, fields: dict[str, str], shown: tuple[bool, str]
) -> None:
    page = alice.post("/sessions/new/choice", SIZED | fields, headers=HTMX).text
    assert box(page) == shown


def test_the_box_is_there_wherever_a_template_is_for_a_whole_node(
    world: World, alice: Browser
) -> None:
    limits = world.status.reported().limits
    assert limits
    world.status.save_limits(replace(limits, accounting=False, enforced=(), associations=()))
    assert box(alice.get("/sessions/new").text) == (True, "whole")
