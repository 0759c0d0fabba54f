"""Limits cannot be bypassed, and slow clients delay nobody else.

Row "X-Forwarded-For against the login limit, slow reading, race for a surviving grant" of what was
attacked and found solid. The login limit is tested last here, and lifted, since it applies to
everybody at this address.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.attack.wire import connected
from tests.support.client import OVER, TIMEOUT, Api, Json, Visitor, http_session
from tests.support.cluster import Cluster

SLOW = 24
RACES = 12


@pytest.fixture(scope="module")
def lab(researcher: Api, session: Json) -> Visitor:
    """Alice's JupyterLab, opened by her."""
    return researcher.open(session["id"], "jupyterlab")


def _largest_file(cluster: Cluster) -> str:
    """The largest of the portal's public static files."""
    folder = "/opt/slipway/portal/web/static"
    find = f"cd {folder} && find . -type f -printf '%s %P\\n' | sort -n | tail -n 1"
    return "/static/" + cluster.shell("portal", find).split()[1]


@contextlib.contextmanager
def _slow_readers(url: str, path: str, cookie: str = "") -> Iterator[list[socket.socket]]:
    """Connections that request a file and then read nothing."""
    with contextlib.ExitStack() as stack:
        held = []
        for _ in range(SLOW):
            stream = stack.enter_context(connected(url))
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = f"GET {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
            stream.sendall((head + (f"Cookie: {cookie}\r\n" if cookie else "") + "\r\n").encode())
            held.append(stream)
        yield held


def _seconds(cluster: Cluster) -> float:
    """The slowest of several visits to the login page."""
    duration = []
    for _ in range(5):
        started = time.monotonic()
        assert http_session().get(f"{cluster.url}/login", timeout=TIMEOUT).status_code == 200
        duration.append(time.monotonic() - started)
    return max(duration)


def test_slow_readers_delay_no_other_user(cluster: Cluster, alice: Api) -> None:
    path = _largest_file(cluster)
    with _slow_readers(cluster.url, path) as held:
        assert len(held) == SLOW
        time.sleep(1)
        assert _seconds(cluster) < 5
        assert alice("GET", "/sessions").status_code == 200


def test_slow_readers_of_an_app_delay_neither_it_nor_the_portal(
    cluster: Cluster, lab: Visitor
) -> None:
    cookie = f"{lab.cookie_name}={lab.cookie}"
    with _slow_readers(lab.origin, "/lab", cookie):
        time.sleep(1)
        assert _seconds(cluster) < 5
        assert lab.get("/api/status").status_code == 200


def _race(visitors: list[Visitor], pause: float, revoke: Callable[[], None]) -> None:
    """Redeem all tickets while access to the app is revoked."""
    start = threading.Barrier(len(visitors) + 1)

    def enter(visitor: Visitor) -> None:
        start.wait()
        visitor.http.get(visitor.link, timeout=TIMEOUT, allow_redirects=False)

    threads = [threading.Thread(target=enter, args=(visitor,)) for visitor in visitors]
    for thread in threads:
        thread.start()
    start.wait()
    time.sleep(pause)
    revoke()
    for thread in threads:
        thread.join()


def _assert_no_access(visitors: list[Visitor]) -> None:
    for visitor in visitors:
        answer = visitor.get("/token", allow_redirects=False)
        assert answer.status_code in (303, 401, 404, 409, 421), (
            answer.status_code,
            answer.text[:200],
        )
        assert '"token"' not in answer.text


@pytest.mark.parametrize("pause", [0, 0.004, 0.02])
def test_no_grant_survives_a_race_with_the_end_of_its_session(alice: Api, pause: float) -> None:
    session = alice.running()["id"]
    alice.open(session, "terminal")
    address = f"/sessions/{session}/apps/terminal"
    visitors = [Visitor(alice.ask("POST", address)["url"]) for _ in range(4)]

    def end() -> None:
        alice.stop(session)

    _race(visitors, pause, end)
    _assert_no_access(visitors)
    alice.wait_state(session, *OVER)
    _assert_no_access(visitors)


def test_no_grant_survives_a_race_with_the_end_of_its_app(alice: Api) -> None:
    """L10: a ticket is redeemed while its app is closed, in either order."""
    session = alice.running()["id"]
    alice.open(session, "terminal")
    address = f"/sessions/{session}/apps/terminal"

    def close() -> None:
        assert alice("DELETE", address).status_code in (204, 404, 409)

    for number in range(RACES):
        visitors = [Visitor(alice.ask("POST", address)["url"])]
        _race(visitors, 0.004 * (number % 4), close)
        _assert_no_access(visitors)


FORGED = (
    "X-Forwarded-For",
    "X_Forwarded_For",
    "X-Real-IP",
    "Forwarded",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "True-Client-IP",
    "CF-Connecting-IP",
    "X-Remote-Addr",
    "Remote-Addr",
    "X-Forwarded",
    "Via",
)


def test_forged_addresses_do_not_raise_the_login_limit(cluster: Cluster) -> None:
    """Wrong passwords from "many addresses", for accounts that do not exist."""

    def attempt(number: int) -> int:
        name = FORGED[number % len(FORGED)]
        value = f"for=198.51.100.{number}" if name == "Forwarded" else f"198.51.100.{number}"
        answer = http_session().post(
            f"{cluster.url}/api/v1/tokens",
            json={"username": f"nobody{number}", "password": "wrong"},
            headers={name: value},
            timeout=TIMEOUT,
        )
        return answer.status_code

    cluster.forget_attempts()
    assert attempt(0) == 401
    cluster.use_up_attempts(10)
    with ThreadPoolExecutor(4) as pool:  # a wrong password takes time to be refused
        seen = list(pool.map(attempt, range(1, 31)))
    assert set(seen) == {401, 429}, seen
    cluster.forget_attempts()  # so that others may log in again
