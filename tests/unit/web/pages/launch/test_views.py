"""Checks of the form while it is filled in, and what it proposes."""

from __future__ import annotations

import pytest

from tests.support.fakes import World
from tests.support.launch_pages import (
    HTMX,
    HUGE_TEMPLATE,
    SMALL_TEMPLATE,
    WIZARD_FORM,
    read_slurm,
    ticked_values,
)
from tests.unit.web.conftest import Browser


def test_the_check_names_all_errors_and_writes_sizes_with_their_unit(
    world: World, alice: Browser
) -> None:
    read_slurm(world)
    wrong = {"name": "a b", "resources.cpus": "99", "resources.memory": "2.5", "count": "25"}
    found = alice.post("/sessions/new/check", WIZARD_FORM | wrong, headers=HTMX).get_json()
    assert set(found["errors"]) == {"name", "resources.cpus", "count"}
    assert found["errors"]["resources.cpus"].startswith("99 is too many: you may use 3 cores")
    assert found["values"]["resources.memory"] == "2.5 GB"
    assert world.store.live() == []


def test_the_check_names_each_refused_variable(alice: Browser) -> None:
    env = '{"LD_PRELOAD": "/x.so", "1A": "b", "GOOD": "c"}'
    found = alice.post("/sessions/new/check", WIZARD_FORM | {"env": env}, headers=HTMX).get_json()
    assert set(found["variables"]) == {"LD_PRELOAD", "1A"}
    assert "program loader" in found["variables"]["LD_PRELOAD"]


def test_a_new_form_proposes_the_first_template_that_fits(
    world: World, alice: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_slurm(world)
    monkeypatch.setattr(
        "portal.services.admin.administration.Administration.templates",
        lambda _self: [HUGE_TEMPLATE, SMALL_TEMPLATE],
    )
    assert ticked_values(alice.get("/sessions/new").text, "template") == ["small"]
    sent = WIZARD_FORM | {"name": "a b"}
    assert ticked_values(alice.post("/sessions", sent).text, "template") == [""]


def test_a_folders_name_does_not_change_how_others_are_shown(alice: Browser) -> None:
    """Somebody else may have chosen it; U+202E turns what follows around."""
    answer = alice.post("/folders", {"folder": "de\u202etag\u05d0"}, headers=HTMX)
    assert "<strong><bdi>de\ufffdtag\u05d0</bdi></strong>" in answer.text
    assert 'name="mount" value="de\u202etag\u05d0" checked' in answer.text
