"""People who are logged in, and strangers at the same address, behind a real HAProxy.

The portal's stand-in says whose a cookie is by the header that a test has it answer.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.core.apps.access import public_key
from tests.support.cluster import wait_for
from tests.unit.web.front import Front, Stream, running_front

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

REQUESTS = 100
"""Requests in ten seconds of one person, or of all strangers of an address; the least."""
ALICE, BOB = "11", "12"
"""Their numbers."""


@pytest.fixture
def front(tmp_path: Path) -> Iterator[Front]:
    """A HAProxy that has seen nobody."""
    with running_front(tmp_path, requests_per_second=REQUESTS // 10) as running:
        yield running


def ask(front: Front, cookie: str = "", says: str = "", path: str = "/x", **answered: str) -> int:
    """The status of a request; `says`: whom the portal takes its sender for."""
    named = answered | ({"X-Slipway-Login": says} if says else {})
    headers = {"X_Answer": json.dumps(named)} | ({"Cookie": cookie} if cookie else {})
    return front.ask(f"localhost:{front.port}", path, **headers).status


MANY = 20 * REQUESTS
"""Requests, of which some are beyond the limit also on a slow machine."""


def is_limited(statuses: Iterator[int]) -> bool:
    """Whether many requests are refused at last."""
    return 429 in statuses


def flood(front: Front, *jars: str) -> bool:
    """Send many requests, which have these cookies in turn; whether they are refused at last."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", front.port, timeout=10)) as one:

        def status(number: int) -> int:
            jar = {"Cookie": jars[number % len(jars)].format(number)} if jars else {}
            one.request("GET", "/x", headers={"Host": f"localhost:{front.port}"} | jar)
            answer = one.getresponse()
            answer.read()
            return answer.status

        return is_limited(map(status, range(MANY)))


def table(front: Front, name: str) -> list[str]:
    """The entries of a table."""
    with socket.socket(socket.AF_UNIX) as runtime:
        runtime.connect(str(front.ca.parent / "haproxy.sock"))
        runtime.sendall(f"show table {name}\n".encode())
        return [line for line in runtime.makefile().read().splitlines() if " key=" in line]


def test_a_strangers_flood_stops_nobody_who_is_logged_in(front: Front) -> None:
    assert ask(front, "slipway=alices", ALICE) == 200
    assert flood(front)
    assert ask(front) == ask(front, "slipway=bobs", BOB) == 429
    assert ask(front, "slipway=alices") == 200
    assert ask(front, "slipway=alices", path="/api/v1/x") == 200


def test_made_up_cookies_are_one_stranger_and_are_not_stored(front: Front) -> None:
    assert flood(front, "slipway=made-up-{}")
    assert ask(front) == 429
    assert table(front, "logins") == table(front, "people") == []


def test_made_up_tokens_are_one_stranger(front: Front) -> None:
    host = f"localhost:{front.port}"
    assert is_limited(
        front.ask(host, "/api/v1/x", Authorization=f"Bearer {number}").status
        for number in range(MANY)
    )
    assert table(front, "logins") == []


def test_a_person_has_one_limit_with_all_logins(front: Front) -> None:
    assert ask(front, "slipway=one", ALICE) == ask(front, "slipway=two", ALICE) == 200
    assert ask(front, "slipway=bobs", BOB) == 200
    assert flood(front, "slipway=one", "slipway=two")
    assert ask(front, "slipway=one") == ask(front, "slipway=two") == 429
    assert ask(front, "slipway=bobs") == ask(front) == 200


def test_a_cookie_that_replaces_another_is_known_at_once(front: Front) -> None:
    assert ask(front, "", ALICE, **{"Set-Cookie": "slipway=first; Path=/"}) == 200
    assert ask(front, "slipway=first", ALICE, **{"Set-Cookie": "slipway=second; Path=/"}) == 200
    assert flood(front)
    assert ask(front, "slipway=first") == ask(front, "slipway=second") == 200


def test_a_login_that_has_ended_is_forgotten(front: Front) -> None:
    assert ask(front, "slipway=alices", ALICE) == ask(front, "slipway=alices", "0") == 200
    assert flood(front, "slipway=alices")
    assert ask(front, "slipway=other") == 429, "it was the strangers' limit"


def test_a_cookie_among_planted_ones_is_not_learned(front: Front) -> None:
    """Whoever planted it would know a cookie that counts as her."""
    assert ask(front, "slipway=hers; slipway=planted", ALICE) == 200
    assert table(front, "logins") == []


def test_clients_neither_see_nor_send_the_number(front: Front) -> None:
    named = json.dumps({"X-Slipway-Login": ALICE})
    answer = front.ask(
        f"localhost:{front.port}", "/x", Cookie="slipway=c", X_Answer=named, X_Slipway_Login=BOB
    )
    assert "X-Slipway-Login" not in answer.headers
    assert answer.sent("x-slipway-login") == []


def test_runners_of_one_node_count_by_their_tokens(front: Front) -> None:
    """A job that floods the portal leaves its neighbours on the node their call-backs."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    where = ("127.0.0.1", front.runners_port)
    with contextlib.closing(
        http.client.HTTPSConnection(*where, timeout=10, context=context)
    ) as one:

        def call(token: str, **headers: str) -> int:
            one.request("GET", "/runner/v1/x", headers=headers | {"Authorization": token})
            answer = one.getresponse()
            answer.read()
            return answer.status

        assert call("Bearer a", **{"X-Answer": json.dumps({"X-Slipway-Login": ALICE})}) == 200
        assert is_limited(call("Bearer b") for _ in range(MANY))
        assert call("Bearer a") == 200


# --- connections ----------------------------------------------------------------------------------

EACH = 10
"""Connections of one address that stay open, whoever they are."""


@pytest.fixture(params=["ports", "subdomains"])
def crowded(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Front]:
    """A HAProxy with as many connections of one address as stay open, and alice's cookie."""
    with (
        running_front(tmp_path, request.param, connections_per_address=EACH) as front,
        contextlib.ExitStack() as stack,
    ):
        assert ask(front, "slipway=alices", ALICE) == 200
        front.routes.add(front.key, front.target)
        for port in {front.port, front.app_port}:
            for _ in range(EACH):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), 10))
        wait_for("the connections", lambda: not stays_open(front, ""))
        yield front


def stays_open(front: Front, cookie: str) -> bool:
    """Whether a connection is kept after a request with this cookie, which is answered."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", front.port, timeout=10)) as one:
        jar = {"Cookie": cookie} if cookie else {}
        one.request("GET", "/x", headers={"Host": f"localhost:{front.port}"} | jar)
        answer = one.getresponse()
        answer.read()
        assert answer.status == 200
        return answer.getheader("Connection") != "close"


def test_beyond_an_addresss_connections_only_those_of_people_stay_open(crowded: Front) -> None:
    for _ in range(2 * EACH):
        assert not stays_open(crowded, "slipway=made-up")
        assert stays_open(crowded, "slipway=alices")


def connections_over_http2(front: Front, cookie: str) -> int:
    """How many connections curl needs for 50 requests, one after the other."""
    url = f"https://localhost:{front.port}/x"
    say = ["--write-out", "%{num_connects}\n"]
    jar = ["--cookie", cookie] if cookie else []
    words = ["curl", "-sk", "--http2", *say, *jar, "--output", "/dev/null", f"{url}?[1-50]"]
    numbers = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False).stdout
    return sum(map(int, numbers.split()))


def test_a_strangers_http2_connection_does_not_stay_open_either(tmp_path: Path) -> None:
    certificate = tmp_path / "ca" / "server.pem"
    with (
        running_front(
            tmp_path, connections_per_address=EACH, tls_certificate=str(certificate)
        ) as front,
        contextlib.ExitStack() as stack,
    ):
        named = json.dumps({"X-Slipway-Login": ALICE})
        told = ["-H", f"X-Answer: {named}", "--cookie", "slipway=alices", "--output", "/dev/null"]
        url = f"https://localhost:{front.port}/x"
        subprocess.run(["curl", "-sk", *told, url], timeout=20, check=True)
        assert connections_over_http2(front, "") == 1
        for _ in range(EACH):
            stack.enter_context(socket.create_connection(("127.0.0.1", front.port), 10))
        wait_for("a second connection", lambda: connections_over_http2(front, "") > 1)
        assert connections_over_http2(front, "slipway=alices") == 1


def test_streams_of_an_app_are_its_owners_then(crowded: Front) -> None:
    crowded.routes.add(public_key(crowded.label), crowded.target)
    with contextlib.ExitStack() as stack:
        for cookie, opened in ((None, True), ("", False)):
            stream = Stream(crowded, cookie=cookie)
            stack.callback(stream.close)
            assert stream.opened is opened


def test_a_person_is_answered_while_strangers_connect_too_fast(front: Front) -> None:
    assert ask(front, "slipway=alices", ALICE) == 200
    assert is_limited(ask(front) for _ in range(MANY))
    assert ask(front, "slipway=alices") == 200


@pytest.mark.parametrize("path", ["/login", "/%6Cogin", "/logi%6e", "/api/v1/t%6fkens"])
def test_other_spellings_of_a_path_are_treated_alike(front: Front, path: str) -> None:
    """gunicorn decodes the path: the log-in would read a body of any length otherwise."""
    body = "x" * 20_000
    answer = front.ask(f"localhost:{front.port}", path, "POST", body, Cookie="slipway=made-up")
    assert answer.status == 413


def test_another_process_is_asked_if_one_checks_enough_passwords(front: Front) -> None:
    """The portal's stand-in refuses all: it is asked six times, and the client told to wait."""
    seen = front.portal.noted
    host = f"localhost:{front.port}"
    answer = front.ask(host, "/login", "POST", "name=alice", X_Status="425")
    assert (answer.status, len(seen)) == (503, 6)
    seen.clear()
    assert front.ask(host, "/x", "POST", "name=alice", X_Status="425").status == 503
    assert len(seen) == 1, "only log-ins are repeated"
