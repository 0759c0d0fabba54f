"""P4: a client that is slow on purpose, at any address, delays nobody; not even without a login.

tests/unit/templates/test_haproxy_slow.py does the same with every address of the configuration, and
everything that can be slow; here are the real portal, its programs and its user's open notebook.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.attack.conftest import LoggedIn
from tests.support.client import Api, http_session
from tests.support.cluster import Cluster
from tests.support.delays import TRIES, UserAtWork, slower, usual, worker

__all__ = ["usual", "worker"]

NOT_ADMITTED = "Authorization: Bearer slipway_forged"
LONG = "x" * 60_000
REQUESTS = {
    "upload": ("POST /data/uploads/", ["Content-Length: 1000"], "x"),
    "chunked upload": ("PUT /data/files/home/x", ["Transfer-Encoding: chunked"], "1\r\nx\r\n"),
    "WebDAV": ("PUT /data/dav/home/x", ["Content-Length: 1000", "Expect: 100-continue"], "x"),
    "forged token": ("POST /data/uploads/", ["Content-Length: 1000", NOT_ADMITTED], "x"),
    "forged cookie": ("POST /data/archive", ["Content-Length: 9", "Cookie: slipway=x"], "x"),
    "long body": ("POST /api/v1/sessions", ["Content-Length: 1000000", NOT_ADMITTED], LONG),
    "long page": ("POST /sessions/end", ["Content-Length: 1000000", "Cookie: slipway=x"], LONG),
    "reader": ("GET /static/built/{large}", [], ""),
    "logged in": ("POST /data/uploads/", ["Content-Length: 1000", "{login}"], "x"),
    "logged in, long": ("POST /api/v1/sessions", ["Content-Length: 1000000", "{token}"], LONG),
}
ATTACKS = {
    "short": ["upload", "chunked upload", "WebDAV", "forged token", "forged cookie"],
    "long": ["long body", "long page", "reader", "logged in", "logged in, long"],
}
"""Requests that are sent at the same time."""
PORTAL = 8080
"""The portal's port within the cluster, where no proxy of the containers buffers."""
CONNECTIONS = 150
"""Below the limit of simultaneous requests per address."""
HELD_SECONDS = 60
STOP = "/tmp/slow-clients-end"
SLOWLY = """
import itertools, json, os, socket, ssl, sys, time
stop, requests = sys.argv[1], itertools.cycle(json.load(sys.stdin))
count, port, tls, seconds = map(int, sys.argv[2:])
held, ends = [], time.monotonic() + seconds
while time.monotonic() < ends and not os.path.exists(stop):
    stream = socket.socket()
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stream.settimeout(10)
    try:
        stream.connect(("portal", port))
        if tls:
            stream = ssl._create_unverified_context().wrap_socket(stream)
        stream.sendall(next(requests).encode())
    except OSError:
        pass
    held.append(stream)
    if len(held) > count:
        held.pop(0).close()
        time.sleep(0.05)
"""
"""Keeps so many connections open, and replaces the oldest ones: each is held for some seconds."""


@contextlib.contextmanager
def slow_clients(cluster: Cluster, requests: list[str], count: int = CONNECTIONS) -> Iterator[None]:
    """Connections from the login node that have sent these, and then send and read nothing."""
    numbers = (count, PORTAL, int(cluster.secure), HELD_SECONDS)
    argv = ("python3", "-c", SLOWLY, STOP, *map(str, numbers))
    cluster.run("login", "rm", "-f", STOP)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(cluster.run, "login", *argv, user="bob", stdin=json.dumps(requests))
        time.sleep(2)
        try:
            yield
            assert not held.done(), "the attack was over before the others had worked"
        finally:
            cluster.run("login", "touch", STOP, user="bob")
            held.result()


def message(cluster: Cluster, name: str, login: str, token: str) -> str:
    """A request that is never completed."""
    line, headers, body = REQUESTS[name]
    host = f"Host: {urlsplit(cluster.url).netloc}"
    known = [each.format(login=login, token=token) for each in headers]
    find = "cd /opt/slipway/portal/web/static/built && echo pdf.worker-*"
    asked = line.format(large=cluster.shell("portal", find).strip()) if "{" in line else line
    return "\r\n".join([f"{asked} HTTP/1.1", host, *known, "", body])


@pytest.mark.parametrize("name", ATTACKS)
def test_slow_clients_delay_nobody(
    cluster: Cluster,
    worker: UserAtWork,
    usual: dict[str, float],
    logged_in: LoggedIn,
    bob: Api,
    name: str,
) -> None:
    jar = "; ".join(f"{key}={value}" for key, value in logged_in("bob").http.cookies.items())
    token = f"Authorization: {bob.http.headers['Authorization']!s}"
    requests = [message(cluster, each, f"Cookie: {jar}", token) for each in ATTACKS[name]]
    with slow_clients(cluster, requests):
        rounds = [worker.work()]
        if slower(rounds, usual):  # a busy machine delays single requests
            rounds += [worker.work() for _ in range(TRIES - 1)]
    worker.rest()
    assert not slower(rounds, usual), (usual, rounds)


def test_many_idle_connections_delay_nobody(
    cluster: Cluster, worker: UserAtWork, usual: dict[str, float]
) -> None:
    with slow_clients(cluster, [""], 600):
        rounds = [worker.work() for _ in range(TRIES)]
    assert "page" not in slower(rounds, usual), (usual, rounds)
    worker.rest()


@pytest.mark.parametrize("planted", ["slipway=planted", "slipway-files=planted"])
@pytest.mark.parametrize("path", ["/sessions", "/files", "/data/files/home/"])
def test_planted_cookies_redirect_nowhere(
    cluster: Cluster, logged_in: LoggedIn, planted: str, path: str
) -> None:
    """P8: another port of the portal's host had set cookies for a deeper path, sent first."""
    if cluster.secure:
        planted = f"__Host-{planted}"
    browser = logged_in("alice")
    usual = browser.get(path).status_code
    assert usual in (200, 409), "409: the last one is a folder"
    jar = "; ".join(f"{key}={value}" for key, value in browser.http.cookies.items())
    answer = http_session().get(
        cluster.url + path, headers={"Cookie": f"{planted}; {jar}"}, allow_redirects=False
    )
    assert answer.status_code == usual
