"""Attacks on revocation: an app that is private or closed stays so, whatever happens to HAProxy."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.attack.app_access import link, open_public_app, redeem, serves_word
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

SOCKET = "/run/slipway/haproxy.sock"
MASTER = "/run/slipway/master.sock"
MAP = "/run/slipway/routes.map"
SOON = 25
"""Seconds in which the worker has compared HAProxy's map twice."""


@contextmanager
def haproxy_unreachable(cluster: Cluster) -> Iterator[None]:
    """HAProxy cannot be reached meanwhile."""
    # The master process lists the others, which are told through it.
    sockets = (SOCKET, MASTER)
    for socket in sockets:
        cluster.run("portal", "mv", socket, f"{socket}.away")
    try:
        yield
    finally:
        for socket in sockets:
            cluster.run("portal", "mv", f"{socket}.away", socket)


def command_haproxy(cluster: Cluster, command: str) -> str:
    """Send HAProxy a command."""
    talk = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); "
        "s.sendall(sys.argv[2].encode() + b'\\n'); "
        "print(b''.join(iter(lambda: s.recv(65536), b'')).decode())"
    )
    return cluster.run("portal", "python3", "-c", talk, SOCKET, command)


def shown(api: Api, session: str, app: str) -> Json:
    """An app in the session's API response."""
    found: Json = next(one for one in api.get(session)["apps"] if one["name"] == app)
    return found


@pytest.mark.parametrize("by", ["private", "closed"])
def test_an_app_that_could_not_be_closed_is_shown_open_until_it_is(
    cluster: Cluster, bob: Api, by: str
) -> None:
    """M1: the proxy did not respond once, and every visitor kept access for ever."""
    his, word = bob.running()["id"], uuid.uuid4().hex
    address = str(open_public_app(bob, his, word)["public_url"])
    path = f"/sessions/{his}/apps/webapp"

    def revoke() -> int:
        if by == "closed":
            return bob("DELETE", path).status_code
        return bob("POST", path, json={"public": False}).status_code

    with haproxy_unreachable(cluster):
        for _ in range(2):
            assert revoke() == 503, "it claims to be closed"
        now = shown(bob, his, "webapp")
        assert (now["public"], now["still_open"]) == (False, True)
        assert serves_word(address, word), "HAProxy was reachable"
    wait_for("access is revoked", lambda: not serves_word(address, word), SOON)
    wait_for(
        "the app is reported closed", lambda: not shown(bob, his, "webapp")["still_open"], SOON
    )
    assert revoke() in (200, 204)


def test_haproxys_map_is_synced_with_the_database(cluster: Cluster, bob: Api) -> None:
    """M1: entries that a crash has left behind, or lost."""
    his, word = bob.running()["id"], uuid.uuid4().hex
    address = str(open_public_app(bob, his, word)["public_url"])
    lines = command_haproxy(cluster, f"show map {MAP}").splitlines()
    entry = next(line.split() for line in lines if f"webapp.{his}" in line)
    key, target = entry[1], entry[2]
    assert key.endswith(".public")
    command_haproxy(cluster, f"del map {MAP} {key}")
    wait_for("the route is restored", lambda: serves_word(address, word), SOON)
    link(bob, his, "webapp", public=False)
    assert not serves_word(address, word)
    command_haproxy(cluster, f"add map {MAP} {key} {target}")
    assert serves_word(address, word)
    wait_for("the route is removed again", lambda: not serves_word(address, word), SOON)


def test_an_unknown_cookie_gives_no_access(cluster: Cluster, bob: Api) -> None:
    """C1, M1: neither a grant of another session, nor an entry unknown to the database."""
    his = bob.running()["id"]
    lab = bob.open(his, "terminal")
    assert bob("DELETE", f"/sessions/{his}/apps/terminal").status_code == 204
    assert lab.get("/token", allow_redirects=False).status_code in (303, 401)
    assert redeem(lab.link)[0] == 401
