"""The app launcher's pages: what is offered, chosen, shown and revoked."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from flask import Flask

from portal.core.admin.audit import AuditFilter
from portal.core.admin.caps import CapsRequest
from portal.core.apps.access import AppOptions, AppState, public_key
from portal.errors import InvalidRequest
from tests.support.fakes import APPS, World, make_world
from tests.support.sessions import ADMIN, ALICE, REQUEST
from tests.unit.web.conftest import Browser, Runner, make_settings

Launched = Callable[..., Runner]
HTMX = {"HX-Request": "true"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal whose apps use a small pool of ports."""
    settings = make_settings(tmp_path, apps="ports", apps_ports=[10000, 10003])
    return make_world(settings)


@pytest.fixture
def runner(launched: Launched) -> Runner:
    """A running session of alice's."""
    found = launched("alice")
    found.ready()
    return found


@pytest.fixture
def place(runner: Runner) -> str:
    """The URL of its launcher."""
    return f"/sessions/{runner.session.id}/apps"


def visible_text(text: str) -> str:
    """The visible text: no tags, no entities, single spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


def card(text: str, app: str) -> str:
    """An app's card."""
    found = re.search(rf'<li class="app-card" data-app="{app}">.*?</li>', text, re.DOTALL)
    assert found is not None, text
    return found[0]


def label(location: str) -> str:
    """The port that a response redirects to."""
    return str(urlsplit(location).port)


def allow(world: World, **rules: bool) -> None:
    """Set the administrators' rules."""
    world.services.administration.save_rules(ADMIN, CapsRequest(**rules), None)


def test_there_is_a_card_for_each_app(alice: Browser, place: str) -> None:
    page = alice.get(place)
    assert page.status_code == 200
    assert re.findall(r'data-app="([^"]*)"', page.text) == [
        "jupyterlab", "notebook", "terminal", "board", "any",
    ]  # fmt: skip
    assert "<!doctype html>" in page.text
    part = alice.get(place, headers=HTMX).text
    assert "<!doctype html>" not in part
    assert 'data-app="jupyterlab"' in part


def test_the_row_leads_to_the_launcher_first(alice: Browser, place: str) -> None:
    row = alice.get("/sessions").text
    controls = row[row.index('<span class="controls">') :]
    first = re.search(r"<(a|button)\b[^>]*>", controls)
    assert first is not None
    assert f'href="{place}"' in first[0]


def test_the_launchers_of_a_pending_and_an_ended_session(
    alice: Browser, launched: Launched
) -> None:
    runner = launched("alice")
    place = f"/sessions/{runner.session.id}/apps"
    assert "starts with it" in visible_text(alice.get(place).text)
    alice.post(f"{place}/terminal/open")
    assert "Waiting" in visible_text(card(alice.get(place).text, "terminal"))
    alice.post("/sessions/end", {"ids": runner.session.id})
    page = alice.get(place).text
    assert "This session is over" in visible_text(page)
    assert "app-card" not in page


def test_others_find_no_launcher(app: Flask, bob: Browser, place: str) -> None:
    admin = Browser(app).log_in("admin")
    for browser in (bob, admin):
        assert browser.get(place).status_code == 404
        assert browser.get(f"{place}/now").status_code == 404
        for action in ("open", "private", "close"):
            assert browser.post(f"{place}/board/{action}").status_code == 404


def test_an_open_launcher_does_not_extend_the_login(
    world: World, alice: Browser, place: str
) -> None:
    for _ in range(13):
        world.clock.advance(hours=1)
        answer = alice.get(f"{place}/now", headers=HTMX)
    assert answer.headers["HX-Redirect"] == "/login"


def test_cards_show_the_progress_of_their_apps(alice: Browser, place: str, runner: Runner) -> None:
    assert "chip " not in card(alice.get(place).text, "terminal")
    alice.post(f"{place}/terminal/open")
    assert "Starting" in visible_text(card(alice.get(place).text, "terminal"))
    runner("apps/terminal", {"state": "ready"})
    assert "Running" in visible_text(card(alice.get(place).text, "terminal"))
    message = "terminal stopped (exit code 3)"
    runner("apps/terminal", {"state": "failed", "message": message, "log": "no <such> thing"})
    failed = card(alice.get(place).text, "terminal")
    assert "exit code 3" in failed
    assert "no &lt;such&gt; thing" in failed


def test_only_apps_that_may_be_public_offer_it(world: World, alice: Browser, place: str) -> None:
    page = alice.get(place).text
    assert 'name="public"' in card(page, "board")
    assert "without logging in" in visible_text(card(page, "board"))
    assert 'name="public"' not in card(page, "terminal")
    allow(world, public_apps=False)
    assert 'name="public"' not in alice.get(place).text
    refused = alice.post(f"{place}/board/open", {"public": "yes"})
    assert refused.status_code == 422
    assert "cannot be opened to everybody" in card(refused.text, "board")
    assert world.apps.opened(place.split("/")[2]) == []


def test_public_visibly_and_until_made_private(
    world: World, alice: Browser, place: str, runner: Runner
) -> None:
    opened = alice.post(f"{place}/board/open", {"public": "yes"})
    port = label(opened.headers["Location"])
    assert world.routes.map == {}
    runner("apps/board", {"state": "ready"})
    assert public_key(port) in world.routes.map
    shown = card(alice.get(place).text, "board")
    assert f'value="http://127.0.0.1:{port}/"' in shown
    assert "2026-11-20 12:00:00 UTC" in visible_text(shown)
    assert "Board is open to everybody" in visible_text(alice.get("/sessions").text)
    # Reopening it without the field leaves it public.
    alice.post(f"{place}/board/open")
    assert public_key(port) in world.routes.map

    again = alice.post(f"{place}/board/private")
    assert (again.status_code, again.headers["Location"]) == (303, place)
    assert public_key(port) not in world.routes.map
    assert "Make private" not in alice.get(place).text
    assert "is open to everybody" not in visible_text(alice.get("/sessions").text)
    alice.post(f"{place}/board/private")
    words = [
        line.action
        for line in world.services.administration.events(ADMIN, AuditFilter(), 100, None)[0]
    ]
    assert [word for word in words if word.startswith("app.")] == [
        "app.unpublish", "app.open", "app.publish",
    ]  # fmt: skip


def test_public_apps_can_be_made_private_where_no_longer_permitted(
    world: World, alice: Browser, place: str, runner: Runner
) -> None:
    alice.post(f"{place}/board/open", {"public": "yes"})
    runner("apps/board", {"state": "ready"})
    allow(world, public_apps=False)
    assert "Make private" in visible_text(card(alice.get(place).text, "board"))
    alice.post(f"{place}/board/private")
    assert world.routes.map == {}


def test_closing_revokes_every_route_without_confirmation(
    world: World, alice: Browser, place: str, runner: Runner
) -> None:
    opened = urlsplit(alice.post(f"{place}/board/open", {"public": "yes"}).headers["Location"])
    runner("apps/board", {"state": "ready"})
    world.gate.enter(str(opened.port), opened.query.removeprefix("ticket="))
    assert len(world.routes.map) == 2
    assert "Every browser, yours too" in visible_text(card(alice.get(place).text, "board"))
    closed = alice.post(f"{place}/board/close", headers=HTMX)
    assert closed.status_code == 200
    assert "Close" not in visible_text(card(closed.text, "board"))
    assert "Running" in visible_text(card(closed.text, "board"))
    assert world.routes.map == {}


def test_a_preferred_port(alice: Browser, place: str) -> None:
    page = card(alice.get(place).text, "terminal")
    assert 'min="10000" max="10003"' in page
    opened = alice.post(f"{place}/terminal/open", {"preferred_port": "10002"})
    assert label(opened.headers["Location"]) == "10002"


def test_a_taken_port_is_reported_before_the_app_opens(alice: Browser, place: str) -> None:
    alice.post(f"{place}/terminal/open", {"preferred_port": "10002"})
    response_json = alice.post(f"{place}/board/open", {"preferred_port": "10002", "public": "yes"})
    assert response_json.status_code == 200
    found = re.search(
        r"Port 10002 is taken; it is on port (\d+)\.", visible_text(response_json.text)
    )
    assert found is not None
    assert f'action="{place}/board/open"' in response_json.text
    there = alice.post(f"{place}/board/open")
    assert label(there.headers["Location"]) == found[1]


@pytest.mark.parametrize(
    ("port", "text"),
    [
        ("80", "Choose a port from 10000 to 10003"),
        ("99999", "Choose a port from 10000 to 10003"),
        ("many", "Write the number of a port"),
        ("9" * 5000, "Write the number of a port"),
        ("-1", "Write the number of a port"),
    ],
)
def test_an_invalid_port(world: World, alice: Browser, place: str, port: str, text: str) -> None:
    refused = alice.post(f"{place}/board/open", {"preferred_port": port})
    assert refused.status_code == 422
    shown = card(refused.text, "board")
    assert text in visible_text(shown)
    assert f'value="{port}"' in shown
    assert 'aria-invalid="true"' in shown
    assert world.apps.opened(place.split("/")[2]) == []


def test_administrators_may_hide_ports(world: World, alice: Browser, place: str) -> None:
    allow(world, preferred_ports=False)
    assert "Try this port" not in alice.get(place).text
    refused = alice.post(f"{place}/board/open", {"preferred_port": "10002"})
    assert refused.status_code == 422
    assert "Ports cannot be chosen here" in visible_text(refused.text)


def test_apps_with_names_have_no_ports(tmp_path: Path) -> None:
    world = make_world(make_settings(tmp_path, apps="subdomains"))
    session = world.launch(ALICE, REQUEST)
    assert world.apps.choices(APPS["board"]).ports is None
    with pytest.raises(InvalidRequest, match="ports cannot be chosen here"):
        world.apps.open_app(ALICE, session.id, "board", AppOptions(port=10002))


def test_an_app_with_a_prompt(world: World, alice: Browser, place: str, runner: Runner) -> None:
    assert "Its command" in visible_text(card(alice.get(place).text, "any"))
    assert alice.post(f"{place}/terminal/open", {"asked": "x"}).status_code == 422
    for wrong in ("two\nlines", "x" * 501):
        refused = alice.post(f"{place}/any/open", {"asked": wrong})
        assert refused.status_code == 422
        assert "Write one line of at most 500 characters" in visible_text(card(refused.text, "any"))
    assert world.runners.requests == []
    alice.post(f"{place}/any/open", {"asked": " serve --all "})
    assert 'value="serve --all"' in card(alice.get(place).text, "any")
    runner("apps/any", {"state": "ready"})
    alice.post(f"{place}/any/open", {"asked": "serve --all"})
    alice.post(f"{place}/any/open")
    assert [order["asked"] for _, order in world.runners.requests] == ["serve --all"]


def test_another_answer_restarts_the_app(
    world: World, alice: Browser, place: str, runner: Runner
) -> None:
    alice.post(f"{place}/any/open", {"asked": "serve"})
    runner("apps/any", {"state": "ready"})
    world.runners.unreachable = True
    assert alice.post(f"{place}/any/open", {"asked": ""}).status_code == 503
    assert world.apps.opened(runner.session.id)[0].asked == "serve"
    world.runners.unreachable = False
    link = urlsplit(alice.post(f"{place}/any/open", {"asked": ""}).headers["Location"])
    world.gate.enter(str(link.port), link.query.removeprefix("ticket="))
    assert world.runners.stopped == ["any"]
    assert [order["asked"] for _, order in world.runners.requests] == ["serve", ""]
    assert world.apps.opened(runner.session.id)[0].state is AppState.STARTING
    assert world.routes.map == {}
    runner("apps/any", {"state": "ready"})
    assert len(world.routes.map) == 1


def test_a_waiting_app_uses_the_last_answer(
    world: World, alice: Browser, launched: Launched
) -> None:
    runner = launched("alice")
    for answer in ("first", "second"):
        alice.post(f"/sessions/{runner.session.id}/apps/any/open", {"asked": answer})
    assert world.runners.stopped == []
    order = (runner.ready().json or {})["start"][0]
    assert (order["name"], order["asked"]) == ("any", "second")
