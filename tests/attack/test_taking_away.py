"""Attacks on taking away: what is private or closed is so, whatever HAProxy does in between."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.attack.app_access import link, redeem, says, serves
from tests.client import Api, Json
from tests.cluster import Cluster, wait_for

SOCKET = "/run/slipway/haproxy.sock"
MAP = "/run/slipway/routes.map"
SOON = 25
"""Seconds in which the worker has looked at HAProxy's map twice."""


@contextmanager
def deaf(cluster: Cluster) -> Iterator[None]:
    """HAProxy does not hear anybody meanwhile."""
    cluster.run("portal", "mv", SOCKET, f"{SOCKET}.away")
    try:
        yield
    finally:
        cluster.run("portal", "mv", f"{SOCKET}.away", SOCKET)


def tell(cluster: Cluster, command: str) -> str:
    """Say something to HAProxy."""
    talk = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "s.sendall(sys.argv[2].encode() + b'\\n'); "
        "print(b''.join(iter(lambda: s.recv(65536), b'')).decode())"
    )
    return cluster.run("portal", "python3", "-c", talk, SOCKET, command)


def shown(api: Api, session: str, app: str) -> Json:
    """What the session says of an app."""
    found: Json = next(one for one in api.get(session)["apps"] if one["name"] == app)
    return found


@pytest.mark.parametrize("by", ["private", "closed"])
def test_what_could_not_be_shut_is_called_open_until_it_is(
    cluster: Cluster, bob: Api, by: str
) -> None:
    """M1: the proxy did not answer once, and everybody was inside for ever."""
    his, word = bob.running()["id"], uuid.uuid4().hex
    address = str(serves(bob, his, word)["public_url"])
    path = f"/sessions/{his}/apps/webapp"

    def take_away() -> int:
        if by == "closed":
            return bob("DELETE", path).status_code
        return bob("POST", path, json={"public": False}).status_code

    with deaf(cluster):
        for _ in range(2):
            assert take_away() == 503, "it says that it is shut"
        now = shown(bob, his, "webapp")
        assert (now["public"], now["still_open"]) == (False, True)
        assert says(address, word), "the outage was none"
    wait_for("nobody is let in any more", lambda: not says(address, word), SOON)
    wait_for("it is said", lambda: not shown(bob, his, "webapp")["still_open"], SOON)
    assert take_away() in (200, 204)


def test_haproxys_map_becomes_what_the_store_says(cluster: Cluster, bob: Api) -> None:
    """M1: entries that a crash has left, or lost."""
    his, word = bob.running()["id"], uuid.uuid4().hex
    address = str(serves(bob, his, word)["public_url"])
    lines = tell(cluster, f"show map {MAP}").splitlines()
    entry = next(line.split() for line in lines if f"webapp.{his}" in line)
    key, target = entry[1], entry[2]
    assert key.endswith(".public")
    tell(cluster, f"del map {MAP} {key}")
    wait_for("the way is there again", lambda: says(address, word), SOON)
    link(bob, his, "webapp", public=False)
    assert not says(address, word)
    tell(cluster, f"add map {MAP} {key} {target}")
    assert says(address, word)
    wait_for("the way is shut again", lambda: not says(address, word), SOON)


def test_a_cookie_that_nobody_gave_lets_nobody_in(cluster: Cluster, bob: Api) -> None:
    """C1, M1: neither a grant of another session, nor an entry that the store does not know."""
    his = bob.running()["id"]
    lab = bob.open(his, "terminal")
    assert bob("DELETE", f"/sessions/{his}/apps/terminal").status_code == 204
    assert lab.get("/token", allow_redirects=False).status_code in (303, 401)
    assert redeem(lab.link)[0] == 401
