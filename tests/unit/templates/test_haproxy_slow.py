"""Nobody waits for a client that is slow on purpose: a real HAProxy, a real gunicorn.

The addresses come from the rendered configuration: one that leads to the portal, and is not in
ADDRESSES, fails the first test.
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import re
import shutil
import socket
import ssl
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from portal.core.auth.person import hash_secret
from portal.core.files.server import route_key
from tests.support.fakes import PASSWORDS
from tests.unit.web.conftest import LAUNCH
from tests.unit.web.front import SESSION, Front, free_ports, running_front
from tests.unit.web.gunicorn_site import LARGE, behind

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

ATTACKERS = [f"127.0.1.{number}" for number in range(1, 21)]
"""Many, as the limits per address must not be what keeps the others quick."""
OTHERS = "127.0.0.2"
CONNECTIONS = 60
"""For each kind of request."""
SLOWEST = 0.5
"""Seconds more than on a quiet portal."""
TRIES = 5
TIMEOUT = 4.0
FILES = "cookie-of-a-file-server-that-ended"


@dataclass(frozen=True)
class Address:
    """Where requests reach the portal."""

    path: str
    cookie: str = ""
    """Without it, HAProxy would choose another backend."""


ADDRESSES: dict[tuple[str, str], list[Address]] = {
    ("web", "portal"): [
        Address("/login"),
        Address("/sessions/end"),
        Address("/nothing"),
        Address(f"/static/{LARGE}"),
    ],
    ("web", "portal_json"): [
        Address("/api/v1/sessions"),
        Address("/api/v1/tokens"),
        Address("/api/v1/openapi.json"),
    ],
    ("web", "files_entry"): [Address("/data/uploads/"), Address("/data/files/home/x")],
    ("files_starts", "files_entry"): [Address("/data/uploads/", f"slipway-files={FILES}")],
    ("apps", "portal"): [Address("/"), Address("/.slipway/enter")],
    ("runners", "portal_runners"): [Address("/runner/v1/x")],
    ("monitoring", "portal_monitoring"): [Address("/metrics")],
}
CREDENTIALS = ("", "Cookie: slipway=forged", "Authorization: Bearer slipway_forged")
ADMITTED_BY_CREDENTIALS = ("body", "chunks", "long body", "body of GET")
"""What HAProxy treats otherwise if there is a cookie or a token, which can be forged."""
LONG = b"x" * 60_000
UNVERIFIED = ssl.create_default_context()
UNVERIFIED.check_hostname, UNVERIFIED.verify_mode = False, ssl.CERT_NONE


def requests_never_completed(path: str, headers: list[str]) -> dict[str, bytes]:
    """By what is slow."""

    def head(method: str, *more: str) -> bytes:
        return "\r\n".join([f"{method} {path} HTTP/1.1", *headers, *more, "", ""]).encode()

    return {
        "nothing": b"",
        "head": head("GET")[:-2],
        "body": head("POST", "Content-Length: 1000") + b"x",
        "body of PUT": head("PUT", "Content-Length: 1000") + b"x",
        "chunks": head("POST", "Transfer-Encoding: chunked") + b"1\r\nx\r\n",
        "expected body": head("POST", "Content-Length: 1000", "Expect: 100-continue"),
        "odd expectation": head("POST", "Content-Length: 1000", "Expect: nothing") + b"x",
        "long body": head("POST", "Content-Length: 1000000") + LONG,
        "body of GET": head("GET", "Content-Length: 1000000") + LONG,
        "reader": head("GET") * 2,
    }


def portal_routes(config: str) -> set[tuple[str, str]]:
    """Frontends, and the backends behind them, that lead to gunicorn."""
    sections = re.split(r"^(?=(?:frontend|backend|global|defaults)\b)", config, flags=re.MULTILINE)
    portal, uses = set(), {}
    for text in sections:
        kind, _, name = text.partition("\n")[0].partition(" ")
        if kind == "backend" and re.search(r"(portal|runners)\.sock", text):
            portal.add(name)
        if kind == "frontend":
            uses[name] = set(re.findall(r"^\s*(?:use|default)_backend (\S+)", text, re.MULTILINE))
    assert all(uses.values()), "a frontend without a backend"
    routes = {(name, backend) for name, used in uses.items() for backend in used & portal}
    assert portal == {backend for _, backend in routes}, "a backend without a frontend"
    return routes


@pytest.fixture(scope="module", params=["ports", "subdomains"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """HAProxy and gunicorn, in each mode; an app is open, and a file server has ended."""
    with (
        running_front(tmp_path_factory.mktemp("front"), request.param) as running,
        behind(running),
    ):
        running.routes.add(running.key, running.target)
        ended = f"127.0.0.1@{free_ports(1)}@files.{SESSION}.slipway"
        running.routes.add(route_key(hash_secret(FILES)), ended)
        yield running


def place(front: Front, frontend: str) -> tuple[int, str]:
    """Port and Host of a frontend."""
    ports = {"runners": front.runners_port, "monitoring": front.watch_port}
    if frontend == "apps":
        assert front.web.apps_ports
        return front.web.apps_ports[0], f"{front.web.apps_host}:{front.web.apps_ports[0]}"
    return ports.get(frontend, front.port), f"localhost:{front.port}"


@contextlib.contextmanager
def attack(front: Front, frontend: str, requests: Iterable[bytes]) -> Iterator[None]:
    """Connections that have sent these, from many addresses."""
    port, _ = place(front, frontend)
    with contextlib.ExitStack() as stack:
        each = itertools.product(requests, range(CONNECTIONS))
        for source, (data, _) in zip(itertools.cycle(ATTACKERS), each, strict=False):
            stream = stack.enter_context(socket.socket())
            stream.settimeout(1)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            stream.bind((source, 0))
            try:
                stream.connect(("127.0.0.1", port))
            except TimeoutError:
                break  # a port with few places is full
            if frontend == "runners":
                stream = stack.enter_context(UNVERIFIED.wrap_socket(stream))
            with contextlib.suppress(OSError):  # what was refused before all of it was sent
                stream.sendall(data)
        time.sleep(0.2)
        yield


class Others:
    """People at another address, who work meanwhile."""

    def __init__(self, front: Front) -> None:
        self._front = front
        self._timeout = 60.0
        self._token = self._login()
        self._timeout = TIMEOUT

    def _login(self) -> str:
        body = json.dumps({"username": "alice", "password": PASSWORDS["alice"]})
        answer = self._ask("POST", "/api/v1/tokens", body)
        return str(json.loads(answer)["token"])

    def _ask(
        self,
        method: str,
        path: str,
        body: str = "",
        origin: str = "",
        **headers: str,
    ) -> bytes:
        host = urlsplit(origin).netloc or f"localhost:{self._front.port}"
        port = int(host.partition(":")[2])
        connection = http.client.HTTPConnection(
            "127.0.0.1", port, timeout=self._timeout, source_address=(OTHERS, 0)
        )
        sent = {"Host": host, "Content-Type": "application/json"} | headers
        with contextlib.closing(connection):
            connection.request(method, path, body or None, sent)
            answer = connection.getresponse()
            assert answer.status < 500, (path, answer.status)
            return answer.read()

    def work(self) -> float:
        """Do what people do; the seconds of the slowest request, infinite without a response."""
        bearer = {"Authorization": f"Bearer {self._token}"}
        actions: list[Callable[[], bytes]] = [
            lambda: self._ask("GET", "/login"),
            lambda: self._ask("GET", f"/static/{LARGE}"),
            lambda: self._ask("GET", "/api/v1/sessions", **bearer),
            lambda: self._ask("POST", "/api/v1/sessions", json.dumps(LAUNCH), **bearer),
            lambda: self._ask("POST", "/api/v1/sessions", "{" + " " * 60_000 + "}", **bearer),
            lambda: self._ask("GET", "/data/files/home/x", **bearer),
            lambda: self._ask("GET", "/lab", origin=self._front.origin, Cookie=self._front.cookie),
        ]
        slowest = 0.0
        for action in actions:
            begun = time.monotonic()
            try:
                action()
            except OSError:
                return float("inf")
            slowest = max(slowest, time.monotonic() - begun)
        return slowest


@pytest.fixture(scope="module")
def others(front: Front) -> Others:
    """People who are not slow."""
    return Others(front)


@pytest.fixture(scope="module")
def usual(others: Others) -> float:
    """Seconds of their slowest request on a quiet portal."""
    return statistics.median(others.work() for _ in range(TRIES))


def test_every_address_of_the_configuration_is_attacked(front: Front) -> None:
    assert portal_routes((front.ca.parent / "haproxy.cfg").read_text()) == set(ADDRESSES)


@pytest.mark.parametrize("credentials", CREDENTIALS, ids=["anonymous", "cookie", "token"])
@pytest.mark.parametrize("key", ADDRESSES, ids="-".join)
def test_slow_clients_delay_nobody(
    front: Front, others: Others, usual: float, key: tuple[str, str], credentials: str
) -> None:
    _, host = place(front, key[0])
    limit = max(1.5 * usual, usual + SLOWEST)
    for address in ADDRESSES[key]:
        cookie = [f"Cookie: {address.cookie}"] if address.cookie else []
        headers = [f"Host: {host}", *cookie, *([credentials] if credentials else [])]
        requests = {
            name: data
            for name, data in requests_never_completed(address.path, headers).items()
            if not credentials or name in ADMITTED_BY_CREDENTIALS
        }
        with attack(front, key[0], requests.values()):
            slow = [others.work()]
            if slow[0] > limit:  # a busy machine delays single requests
                slow += [others.work() for _ in range(TRIES - 1)]
        assert statistics.median(slow) <= limit, (address.path, list(requests), usual, slow)
