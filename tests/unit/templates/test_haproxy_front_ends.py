"""Who a request comes from, for a real HAProxy behind JupyterHub: by proof, and never by claim."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shutil
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from portal.core.apps.access import hub_key
from tests.unit.web.front import SESSION, Answer, Front, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

PROOF = "0123456789abcdef" * 4
AT_ONCE = 10
"""Most connections of one client of JupyterHub's, the least that can be set."""
REQUESTS = 100
"""Requests of one address in ten seconds, the least that can be set."""


@pytest.fixture(scope="module", params=["ports", "subdomains"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    """One HAProxy that knows JupyterHub's proof."""
    folder = tmp_path_factory.mktemp("front")
    (folder / "proof").write_text(f"{PROOF}\n")
    few: dict[str, Any] = {
        "requests_per_second": REQUESTS // 10,
        "connections_per_address": AT_ONCE,
    }
    with running_front(folder, request.param, proof=str(folder / "proof"), **few) as running:
        yield running


def ask(front: Front, **headers: str) -> Answer:
    """Ask the portal for a token."""
    return front.ask(f"localhost:{front.port}", "/api/v1/tokens", **headers)


@pytest.mark.parametrize("client", ["192.0.2.7", "2001:db8:7::1"])
def test_jupyterhub_names_its_client(front: Front, client: str) -> None:
    answer = ask(front, slipway_front_end=PROOF, slipway_client=client)
    assert answer.sent("x-forwarded-for") == [client]
    assert answer.sent("slipway-front-end") == answer.sent("slipway-client") == []


@pytest.mark.parametrize(
    "headers",
    [
        {"slipway_client": "192.0.2.7"},
        {"slipway_client": "192.0.2.7", "slipway_front_end": ""},
        {"slipway_client": "192.0.2.7", "slipway_front_end": PROOF[:-1]},
        {"slipway_client": "192.0.2.7", "slipway_front_end": f"{PROOF}0"},
        {"slipway_client": "192.0.2.7", "slipway_front_end": PROOF.upper()},
        {"slipway_front_end": PROOF},
        {"slipway_front_end": PROOF, "slipway_client": "unknown"},
        {"slipway_front_end": PROOF, "slipway_client": ""},
        {"slipway_front_end": PROOF, "x_forwarded_for": "192.0.2.7", "x_real_ip": "192.0.2.7"},
    ],
)
def test_whoever_proves_or_names_nothing_counts_as_themselves(
    front: Front, headers: dict[str, str]
) -> None:
    answer = ask(front, **headers)
    assert answer.sent("x-forwarded-for") == ["127.0.0.1"]
    assert answer.sent("x-real-ip") == []


def is_limited(front: Front, headers: dict[str, str]) -> bool:
    """Whether many requests are, on one connection, as JupyterHub sends them."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named["Host"] = f"localhost:{front.port}"
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", front.port, timeout=10)) as one:
        for _ in range(10 * REQUESTS):
            one.request("GET", "/api/v1/tokens", headers=named)
            answer = one.getresponse()
            answer.read()
            if answer.status == 429:
                return True
    return False


def test_a_client_that_asks_too_often_stops_nobody_else_behind_jupyterhub(front: Front) -> None:
    """A /64 is one client, as at the portal itself."""
    for client, other in (("192.0.2.50", "192.0.2.51"), ("2001:db8:5::1", "2001:db8:6::1")):
        named = {"slipway_front_end": PROOF, "slipway_client": client}
        assert is_limited(front, named)
        assert ask(front, slipway_front_end=PROOF, slipway_client=other).status == 200
    neighbour = {"slipway_front_end": PROOF, "slipway_client": "2001:db8:5::2"}
    assert ask(front, **neighbour).status == 429
    assert ask(front).status == 200  # JupyterHub itself


def test_each_person_that_a_service_acts_for_counts_as_one(front: Front) -> None:
    """Otherwise one of them could take the places for one login's requests from all others."""
    for number, user in enumerate(("alice", "bob", "alice")):
        said = json.dumps({"X-Slipway-Login": str(number % 2 + 1)})
        named = {"authorization": "Bearer slipway_x", "slipway_user": user, "x_answer": said}
        assert ask(front, **named).status == 200
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.connect(str(front.ca.parent / "haproxy.sock"))
        runtime.sendall(b"show table logins\n")
        shown = runtime.makefile().read()
    assert sorted(re.findall(r"gpt0=(\d+)", shown)) == ["1", "2"], shown


def test_without_the_setting_no_header_names_a_client(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with running_front(tmp_path_factory.mktemp("front"), "ports") as front:
        answer = ask(front, slipway_front_end="", slipway_client="192.0.2.7")
        assert answer.sent("x-forwarded-for") == ["127.0.0.1"]
        assert answer.sent("slipway-client") == []


@contextlib.contextmanager
def streams(front: Front, number: int, forwarded: str) -> Iterator[int]:
    """Open so many connections as JupyterHub's proxy does; how many of them are open."""
    lines = ["GET /user/alice/ws HTTP/1.1", "Host: hub.example.org", "Connection: Upgrade"]
    lines += ["Upgrade: echo", f"X-Forwarded-For: {forwarded}", "", ""]
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(front.connect_hub()) for _ in range(number)]
        answers = []
        for connection in opened:
            connection.sendall("\r\n".join(lines).encode())
            answers.append(connection.recv(12))
        yield sum(answer == b"HTTP/1.1 101" for answer in answers)


@pytest.fixture
def server(front: Front) -> Iterator[None]:
    """A running server of alice's."""
    key = hub_key(SESSION)
    front.routes.add_path("/user/alice/", key)
    front.routes.add(key, f"127.0.0.1@{front.gateway.server_port}@jupyterhub.{SESSION}.slipway")
    yield
    front.routes.remove(key)
    front.routes.set_paths({})


@pytest.mark.parametrize(
    ("forwarded", "other"),
    [
        ("192.0.2.7", "192.0.2.8"),
        ("198.51.100.1, 192.0.2.7", "192.0.2.7, 192.0.2.8"),
        ("198.51.100.1, 192.0.2.7, 127.0.0.1", "192.0.2.8, 127.0.0.1"),
        ("2001:db8:7::1", "2001:db8:8::1"),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.8"),
    ],
)
def test_one_client_of_jupyterhubs_cannot_have_all_connections(
    front: Front, server: None, forwarded: str, other: str
) -> None:
    """A proxy in front of its proxy is no client; that one has added the address before."""
    with streams(front, AT_ONCE + 5, forwarded) as opened:
        assert opened == AT_ONCE
        with streams(front, 1, forwarded) as more, streams(front, 1, other) as others:
            assert (more, others) == (0, 1)


@pytest.mark.parametrize("forwarded", ["127.0.0.1", "unknown", ""])
def test_a_client_that_nobody_names_is_not_limited(
    front: Front, server: None, forwarded: str
) -> None:
    with streams(front, AT_ONCE + 5, forwarded) as opened:
        assert opened == AT_ONCE + 5
