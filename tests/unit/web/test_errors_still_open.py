"""The portal's responses while a revoked route is still open."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest

from tests.support.fakes import World
from tests.unit.web.conftest import Api, Browser, Runner


@pytest.fixture
def runner(launched: Callable[..., Runner]) -> Runner:
    """Alice's session, with a board that is open to everybody."""
    found = launched("alice")
    found.ready()
    return found


def test_page_and_api_report_still_open(
    world: World, runner: Runner, alice: Browser, api: Callable[[str], Api]
) -> None:
    """M1: 503 each time, in the app's state and on its card, until the route is closed."""
    place = f"/sessions/{runner.session.id}"
    alice.post(f"{place}/apps/board/open", {"public": "yes"})
    runner("apps/board", {"state": "ready"})
    world.routes.unreachable = True
    program = api("alice")
    for _ in range(2):
        answer = program("DELETE", f"{place}/apps/board")
        assert (answer.status_code, (answer.json or {})["title"]) == (503, "Still open")
        page = alice.post(f"{place}/apps/board/private")
        assert page.status_code == 503
        assert "still open" in page.text
    board = next(a for a in (program("GET", place).json or {})["apps"] if a["name"] == "board")
    assert (board["public"], board["still_open"]) == (False, True)
    assert "Still open." in _text_of(alice.get(f"{place}/apps").text)
    world.routes.unreachable = False
    world.proxy.retry_revocations()
    assert "Still open." not in _text_of(alice.get(f"{place}/apps").text)


def _text_of(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())
