"""HAProxy is reloaded, the portal restarted: open apps do not notice. Revoked ones are cut off."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.support.client import TIMEOUT, Api, Browser, Json, Visitor
from tests.support.cluster import Cluster, healthy, wait_for
from tests.support.proxy import haproxy_workers, responsive, socket_command

MANY = 300
CHANGES = 12
"""Fewer than the browsers per app: beyond that limit the oldest cookies are dropped."""
SOCKET = "/api/events/subscribe"


@pytest.fixture(scope="module")
def lab(researcher: Api, session: Json) -> Visitor:
    """JupyterLab in the shared session."""
    return researcher.open(session["id"], "jupyterlab")


@pytest.fixture(scope="module")
def sockets(lab: Visitor) -> Iterator[list[ClientConnection]]:
    """Many open WebSockets."""
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: lab.websocket(SOCKET), range(MANY)))
        yield found
        list(pool.map(lambda socket: socket.close(), found))


def routes(cluster: Cluster) -> int | None:
    """The number of routes in HAProxy's map; None until the map is complete."""
    text = cluster.shell("portal", socket_command("haproxy", "show map /run/slipway/routes.map"))
    keys = {line.split()[1] for line in text.splitlines() if line}
    return len(keys) - 1 if "slipway" in keys else None


def known_routes(cluster: Cluster) -> int:
    """The same, waiting until the map is complete."""
    return wait_for("the routes", lambda: routes(cluster), 60)


def test_many_websockets_survive_a_reload_and_a_restart(
    sockets: list[ClientConnection], cluster: Cluster, lab: Visitor
) -> None:
    assert responsive(sockets) == MANY
    before = haproxy_workers(cluster)
    cluster.daemon("restart", "portal", "web", "worker")
    cluster.daemon("reload", "portal", "haproxy")
    wait_for("a new process", lambda: haproxy_workers(cluster) != before)
    wait_for("a healthy portal", lambda: healthy(cluster), 60)
    assert responsive(sockets) == MANY
    assert set(before) < set(haproxy_workers(cluster)), "the old process lives on with its streams"
    # New requests are served by the new process, with the old cookie.
    wait_for("the app by the new process", lambda: lab.get("/api/status").status_code == 200)


def test_changing_routes_reloads_nothing(
    cluster: Cluster, researcher: Api, session: Json, lab: Visitor
) -> None:
    known, before = known_routes(cluster), haproxy_workers(cluster)
    path = f"/sessions/{session['id']}/apps/jupyterlab"

    def enter(_: int) -> int:
        visitor = Visitor(researcher.ask("POST", path)["url"])
        return visitor.http.get(visitor.link, allow_redirects=False, timeout=TIMEOUT).status_code

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(enter, range(CHANGES))) == [303] * CHANGES
    assert routes(cluster) == known + CHANGES
    assert haproxy_workers(cluster) == before


def test_after_a_cold_start_the_routes_are_restored(cluster: Cluster, lab: Visitor) -> None:
    known = known_routes(cluster)
    cluster.daemon("restart", "portal", "haproxy")
    wait_for("a healthy portal", lambda: healthy(cluster), 30, pause=0.05)
    # No request for an app meanwhile: the worker alone restores the routes.
    wait_for("all routes", lambda: routes(cluster) == known, 2, pause=0.1)
    assert lab.get("/api/status").status_code == 200


def test_logging_out_and_ending_cut_open_connections(
    cluster: Cluster, researcher: Api, session: Json, lab: Visitor
) -> None:
    browser = Browser(cluster, "alice")
    path = f"/sessions/{session['id']}/apps/jupyterlab/open"
    opened = Visitor(browser.post(path, allow_redirects=False).headers["Location"])
    opened.enter()
    by_login, by_token = opened.websocket(SOCKET), lab.websocket(SOCKET)
    assert responsive([by_login, by_token]) == 2
    browser.post("/logout")
    with pytest.raises(ConnectionClosed):
        by_login.recv(timeout=5)
    assert responsive([by_token]) == 1
    researcher.stop(session["id"])
    with pytest.raises(ConnectionClosed):
        by_token.recv(timeout=5)
