"""Attacks on the port pool: nobody takes over another user's port, or the whole pool."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from tests.attack.app_access import free_ports, has_access, link, move, port_of, redeem
from tests.support.client import OVER, Api


def test_bob_does_not_get_alices_port(alice: Api, bob: Api) -> None:
    """H1: her session has ended, her tab keeps sending requests; he requests her port."""
    hers, his = alice.running()["id"], bob.running()["id"]
    ports = free_ports(alice, hers, "jupyterlab")
    port = next(p for p in reversed(ports) if port_of(move(alice, hers, "jupyterlab", p)) == p)
    alice.stop(hers)
    alice.wait_state(hers, *OVER)
    for app, options in (("terminal", {}), ("webapp", {"public": True, "asked": "sleep 100"})):
        answer = link(bob, his, app, preferred_port=port, **options)
        assert port_of(answer) != port, f"bob's {app} got the port of alice's tab"
        assert f"Port {port} was another user's" in answer["notice"]
    # She gets it back herself.
    again = link(alice, alice.running()["id"], "jupyterlab", preferred_port=port)
    assert port_of(again) == port


def test_nobody_can_occupy_the_pool(bob: Api) -> None:
    """C1, H1: each port that he uses would be his for a month."""
    his = bob.running()["id"]
    ports = free_ports(bob, his, "terminal")
    begun = time.monotonic()
    seen = {port_of(link(bob, his, "terminal", preferred_port=port)) for port in ports}
    assert len(seen) <= 2 + (time.monotonic() - begun) / 3, seen


def test_one_of_many_parallel_port_requests_wins_and_every_link_works(bob: Api) -> None:
    """E17: four preferred ports for one app."""
    his = bob.running()["id"]
    link(bob, his, "terminal")
    ports = free_ports(bob, his, "terminal")[:4]
    answers = at_once([partial(link, bob, his, "terminal", preferred_port=port) for port in ports])
    assert len({port_of(answer) for answer in answers}) == 1, [port_of(a) for a in answers]
    for preferred, answer in zip(ports, answers, strict=True):
        assert bool(answer["notice"]) is (port_of(answer) != preferred), answer
        assert "is taken" not in answer["notice"], "it was free"
        status, visitor = redeem(answer["url"])
        assert status == 303, answer
        assert has_access(visitor)


def test_parallel_open_publish_close_agree_with_the_portal(bob: Api) -> None:
    """E17: whatever the order was, the address and the portal's page agree."""
    his = bob.running()["id"]
    opened = link(bob, his, "webapp", asked="exec python3 -m http.server $PORT", public=True)
    path = f"/sessions/{his}/apps/webapp"
    for _ in range(4):
        at_once([
            lambda: bob("POST", path, json={"public": True}),
            lambda: bob("POST", path, json={"public": False}),
            lambda: bob("DELETE", path),
            lambda: bob("POST", path, json={"public": True}),
            lambda: bob("POST", path, json={}),
        ])  # fmt: skip
        shown = next(app for app in bob.get(his)["apps"] if app["name"] == "webapp")
        assert not shown.get("still_open")
        status, visitor = redeem(opened["url"])
        assert status == 401
        code = visitor.get("/.slipway/status").status_code
        assert (code == 200) is shown["public"], shown


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """Run these calls in parallel."""
    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: call(), calls))
