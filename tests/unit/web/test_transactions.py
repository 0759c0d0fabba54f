"""How many transactions a request takes: pages read together, and a launch decides once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.fakes import World
from tests.support.launch_pages import LAUNCH_FORM
from tests.support.transactions import transactions
from tests.unit.web.conftest import LAUNCH, Api, Browser, Runner

PAGES = {
    "/sessions": 4,
    "/sessions/rows": 4,
    "/sessions/new": 4,
    "/sessions/{id}": 4,
    "/sessions/{id}/now": 4,
    "/jobs": 4,
    "/jobs/rows": 3,
    "/jobs/new": 4,
}
"""With the login's own: one reads it, one marks it as used now and then. A poll reads counts."""


@pytest.mark.parametrize("path", PAGES)
def test_pages(path: str, alice: Browser, world: World, launched: Callable[..., Runner]) -> None:
    address = path.format(id=launched().session.id)
    world.clock.advance(minutes=2)
    with transactions(world) as begun:
        answer = alice.get(address)
    assert answer.status_code == 200
    assert len(begun) <= PAGES[path], begun


def test_a_launch_by_the_form(alice: Browser, world: World) -> None:
    form = LAUNCH_FORM | {"csrf_token": alice.csrf(), "key": "k"}
    with transactions(world) as begun:
        answer = alice.client.post("/sessions", data=form)
    assert answer.status_code == 303
    assert len(begun) <= 9, begun


def test_a_launch_and_a_list_by_the_api(api: Callable[[str], Api], world: World) -> None:
    client = api("alice")
    with transactions(world) as begun:
        answer = client("POST", "/sessions", json=LAUNCH, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 201
    assert len(begun) <= 9, begun

    world.clock.advance(minutes=2)
    with transactions(world) as begun:
        assert client("GET", "/sessions").status_code == 200
    assert len(begun) <= 3, begun
