"""Notices about unused sessions, and the administrators' rule for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from portal.core.session.session import State
from tests.support.fakes import World
from tests.support.idle_sessions import pass_minutes, set_idle_rule
from tests.support.sessions import USAGE_REPORT
from tests.unit.web.conftest import Api, Browser, Runner

Launched = Callable[..., Runner]
MakeApi = Callable[[str], Api]
HTMX = {"HX-Request": "true"}
RULES: dict[str, Any] = {
    "max_shared_memory": "1 GB",
    "idle_minutes": "120",
    "idle_warning": "20",
    "idle_cpu_percent": "25",
    "public_apps": "on",
    "preferred_ports": "on",
}


@pytest.fixture
def admin(app: Flask) -> Browser:
    """The administrator's browser."""
    return Browser(app).log_in("admin")


def running(launched: Launched, name: str = "mine1") -> Runner:
    """A running session of alice's."""
    runner = launched(name=name)
    runner.ready()
    return runner


def etag_of(page: str) -> str:
    """The ETag of the form's content."""
    found = re.search(r'name="seen" value="([0-9a-f]*)"', page)
    assert found is not None
    return found[1]


def test_a_quiet_notice_precedes_the_warning(
    world: World, alice: Browser, launched: Launched
) -> None:
    set_idle_rule(world, 50)
    session = running(launched).session
    page = alice.get("/sessions").text
    assert "Not used since" not in page
    pass_minutes(world, session, 6)
    page = alice.get("/sessions").text
    assert "unless you use it" in page
    assert f"/sessions/{session.id}/keep" not in page
    assert "data-idle=" not in page
    pass_minutes(world, session, 34)
    page = alice.get("/sessions").text
    assert f'id="unused-{session.id}"' in page
    assert f'formaction="/sessions/{session.id}/keep"' in page
    assert 'data-idle="2026-11-20T12:50:00+00:00"' in page
    assert 'data-until="2026-11-20T12:50:00+00:00"' in page


def test_others_see_the_notice_without_the_warning(
    world: World, admin: Browser, bob: Browser, launched: Launched
) -> None:
    set_idle_rule(world, 50)
    session = running(launched).session
    pass_minutes(world, session, 40)
    page = admin.get("/sessions").text
    assert "unless somebody uses it" in page
    assert 'id="unused-' not in page
    assert " data-own " not in page  # without it, no notification either
    assert session.id not in bob.get("/sessions").text


def test_keeping_a_session_on_the_page(
    world: World, alice: Browser, bob: Browser, launched: Launched
) -> None:
    set_idle_rule(world, 50)
    session = running(launched).session
    pass_minutes(world, session, 40)
    path = f"/sessions/{session.id}/keep"
    assert bob.post(path, headers=HTMX).status_code == 404
    assert alice.post(path, headers=HTMX).status_code == 204
    assert "Not used since" not in alice.get("/sessions").text
    assert alice.post(path).headers["Location"] == "/sessions"
    alice.post("/sessions/end", {"ids": session.id})
    answer = alice.post(path, headers=HTMX)
    assert (answer.status_code, answer.text) == (409, "This session is over. Launch it again.")


def test_the_api_reports_and_keeps(world: World, api: MakeApi, launched: Launched) -> None:
    session = running(launched).session
    alice = api("alice")
    path = f"/sessions/{session.id}"
    found = alice("GET", path).json
    assert found is not None
    assert (found["last_used"], found["idle_deadline"]) == ("2026-11-20T12:00:00+00:00", None)
    set_idle_rule(world, 60)
    pass_minutes(world, session, 30)
    found = alice("GET", path).json
    assert found is not None
    assert found["idle_deadline"] == "2026-11-20T13:00:00+00:00"
    kept = alice("POST", f"{path}/keep")
    assert kept.json is not None
    assert (kept.status_code, kept.json["idle_deadline"]) == (200, "2026-11-20T13:30:00+00:00")
    assert api("bob")("POST", f"{path}/keep").status_code == 404
    pass_minutes(world, session, 60)
    found = alice("GET", path).json
    assert found is not None
    assert (found["state"], found["idle_deadline"]) == ("ENDING", None)
    assert alice("POST", f"{path}/keep").status_code == 409


def test_a_busy_kernel_is_reported_by_the_runner(world: World, launched: Launched) -> None:
    runner = running(launched)
    world.clock.advance(minutes=1)
    told = runner("usage", USAGE_REPORT | {"busy": []}).json
    keys = {"name", "kept", "seconds_left", "unused", "authorities", "ready", "next"}
    assert set(told or ()) == keys
    assert world.store.get(runner.session.id).last_used != world.clock.now  # type: ignore[union-attr]
    assert runner("usage", USAGE_REPORT | {"busy": ["jupyterlab"]}).json == told
    assert world.store.get(runner.session.id).last_used == world.clock.now  # type: ignore[union-attr]
    assert runner("usage", USAGE_REPORT | {"busy": ["../etc"]}).status_code == 422


def test_the_rules_in_their_form(world: World, admin: Browser) -> None:
    page = admin.get("/admin/limits").text
    assert page.count(" checked") == 2
    answer = admin.post("/admin/caps", RULES | {"seen": etag_of(page)})
    assert answer.headers["Location"] == "/admin/limits"
    rules = world.services.administration.site_rules()
    assert (rules.idle_minutes, rules.idle_warning, rules.idle_cpu_percent) == (120, 20, 25)
    assert (rules.public_apps, rules.preferred_ports) == (True, True)
    page = admin.get("/admin/limits").text
    for value in ("1 GB", "120", "20", "25"):
        assert f'value="{value}"' in page
    # Saving what the page shows changes nothing, except for a cleared box.
    unticked = {name: value for name, value in RULES.items() if name != "public_apps"}
    assert admin.post("/admin/caps", unticked | {"seen": etag_of(page)}).status_code == 303
    now = world.services.administration.site_rules()
    assert now == rules.model_copy(update={"public_apps": False})
    assert admin.get("/admin/limits").text.count(" checked") == 1
    journal = admin.get("/admin/journal").text
    assert "unused sessions end after 120 minutes (warned 20 before" in journal
    assert "no public apps; before:" in journal


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"idle_minutes": "0"}, "idle_minutes"),
        ({"idle_minutes": "soon"}, "idle_minutes"),
        ({"idle_warning": "120"}, "idle_warning"),
        ({"idle_warning": "-1"}, "idle_warning"),
        ({"idle_minutes": ""}, "idle_warning"),
        ({"idle_cpu_percent": "0"}, "idle_cpu_percent"),
        ({"idle_cpu_percent": "101"}, "idle_cpu_percent"),
        ({"idle_cpu_percent": "10 %"}, "idle_cpu_percent"),
    ],
)
def test_an_invalid_rule_names_its_field(
    world: World, admin: Browser, changes: dict[str, str], field: str
) -> None:
    answer = admin.post("/admin/caps", RULES | changes)
    assert answer.status_code == 422
    assert answer.text.count("field-error") == 1
    assert f'id="error-{field}"' in answer.text
    assert world.services.administration.site_rules().max_shared_memory_mb is None


def test_the_rules_by_the_api(world: World, api: MakeApi, launched: Launched) -> None:
    admin = api("admin")
    body = {"idle_minutes": 90, "idle_cpu_percent": 50, "public_apps": False}
    kept = admin("PUT", "/admin/caps", json=body).json
    assert kept is not None
    assert {name: kept[name] for name in body} == body
    assert "idle_set" not in kept
    for wrong in ({"idle_minutes": 10, "idle_warning": 10}, {"idle_warning": 5}):
        answer = admin("PUT", "/admin/caps", json=wrong)
        assert answer.json is not None
        assert [error["field"] for error in answer.json["errors"]] == ["idle_warning"]
    assert admin("GET", "/admin/caps").json == kept
    session = running(launched).session
    assert world.store.get(session.id).state is State.RUNNING  # type: ignore[union-attr]
