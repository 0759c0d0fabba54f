"""Starts of file servers, their ports and their routes: what a user does to them hurts nobody else.

Each of these attacks succeeded once: a slow shell took all threads, a silent program at the port of
a server that had ended kept its owner from her files, and one login made routes without end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
import requests

from tests.attack.conftest import LoggedIn
from tests.support.client import Api, http_session
from tests.support.cluster import Cluster, in_database, wait_for
from tests.support.cluster_file_servers import (
    PORTAL_KEY,
    end_file_servers,
    file_server_port,
    send_request,
)
from tests.support.hostile_shells import Storm, duration, hostile_shell, wait_until_served

FILE = "/data/files/home/words.txt"
SHELL_SECONDS = 7
SLOW_SHELL = f"echo $$ >> ~/.hostile; sleep {SHELL_SECONDS}; exit 1"
USUAL = 5.0
"""Seconds for others' pages on a busy machine with two cores; the attack made them wait 12."""


@pytest.fixture(autouse=True)
def _hers(cluster: Cluster) -> Iterator[None]:
    cluster.shell("login", "echo words > ~/words.txt", user="alice")
    yield
    cluster.shell("login", "rm -f ~/words.txt", user="alice")


def files_of(api: Api) -> Callable[[], requests.Response]:
    """A request for the user's files, over a connection of its own, without following redirects."""
    headers = {"Authorization": str(api.http.headers["Authorization"])}

    def ask() -> requests.Response:
        with http_session() as http:
            url = f"{api.cluster.url}{FILE}"
            return http.get(url, headers=headers, allow_redirects=False, timeout=90)

    return ask


def test_only_its_owner_waits_for_a_start(cluster: Cluster, alice: Api, bob: Api) -> None:
    """40 requests for files of bob, whose shell takes seven seconds to fail."""
    assert send_request(alice, "GET", FILE).ok
    end_file_servers(cluster, "bob")
    actions: list[Callable[[], object]] = [
        lambda: http_session().get(f"{cluster.url}/login", timeout=90),
        lambda: alice.ask("GET", "/sessions"),
        lambda: alice.ask("GET", "/files/list/home"),
    ]
    with (
        hostile_shell(cluster, "bob", SLOW_SHELL),
        Storm(files_of(bob), many=40, pause=0.2) as storm,
    ):
        time.sleep(1)
        seconds = [duration(action) for _ in range(6) for action in actions]
    wait_until_served(bob)
    print("others waited", [round(each, 2) for each in seconds])
    print("bob waited", sorted(round(each, 2) for each in storm.seconds)[-6:], storm.statuses)
    assert max(seconds) < USUAL, seconds
    assert set(storm.statuses) <= {429, 503}, (storm.statuses, storm.texts[:3])
    assert storm.statuses[503] >= 40  # HAProxy held them until the shell had failed
    assert all("Retry-After" in headers for headers in storm.headers)


def test_the_first_click_opens_the_page(cluster: Cluster, logged_in: LoggedIn) -> None:
    """Nobody's file server runs; of several pages at once the others load themselves again."""
    browser = logged_in("alice")
    end_file_servers(cluster, "alice")
    answers: list[requests.Response] = []
    click = duration(lambda: answers.append(browser.http.get(f"{cluster.url}/files/home")))
    assert answers[0].status_code == 200, answers[0].text[:500]
    again = duration(lambda: browser.http.get(f"{cluster.url}/files/home"))
    print(f"first click {click:.2f} s, second {again:.2f} s")
    end_file_servers(cluster, "alice")

    def open_page(_number: int) -> int:
        for loads in range(1, 30):
            answer = browser.http.get(f"{cluster.url}/files/home", timeout=60)
            if answer.status_code == 200:
                return loads
            assert answer.status_code == 503
            time.sleep(float(answer.headers["Refresh"]))
        raise AssertionError("not within 30 loads")

    with ThreadPoolExecutor(6) as pool:
        loads = list(pool.map(open_page, range(6)))
    print("loads of six pages at once", loads)
    assert max(loads) < 10


SQUATTERS = {
    "silent": "kept.append(listener.accept())",
    "reset": (
        "stream, _ = listener.accept(); "
        "stream.setsockopt(1, 13, struct.pack('ii', 1, 0)); stream.close()"  # SO_LINGER
    ),
    "tls": (
        "kept.append(context.wrap_socket(listener.accept()[0], server_side=True)); "
        "print('GOT', kept[-1].recv(999), flush=True)"
    ),
}
SQUATTER = """
import socket, ssl, struct, time
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain('c', 'k')
kept = []
while True:  # for a minute, the kernel keeps the port of connections that the server has closed
    try:
        listener = socket.create_server(('', PORT))
        break
    except OSError:
        time.sleep(0.1)
print('listening', flush=True)
listener.settimeout(90)
while True:
    try:
        WHAT
        print('met', flush=True)
    except TimeoutError:
        break
    except OSError as error:
        print('met', type(error).__name__, flush=True)
"""


@contextmanager
def squatter(cluster: Cluster, kind: str, port: int) -> Iterator[Callable[[], str]]:
    """Bob's program at a port of the login node; gives what it has printed."""
    program = SQUATTER.replace("PORT", str(port)).replace("WHAT", SQUATTERS[kind])

    def seen() -> str:
        return cluster.shell("login", "cat ~/squat.txt", user="bob")

    try:
        cluster.shell(
            "login", f"cd && {PORTAL_KEY}; cat > squat.py <<'E'\n{program}\nE", user="bob"
        )
        run = "cd; setsid python3 squat.py > squat.txt 2>&1 < /dev/null &"
        cluster.shell("login", run, user="bob")
        wait_for("bob's program", lambda: "listening" in seen(), 90)
        yield seen
    finally:
        # pkill ends this shell as well.
        clean = "rm -f ~/squat.py ~/squat.txt ~/k ~/c; pkill -9 -u bob -f squat.py"
        cluster.shell("login", clean, user="bob", check=False)


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    ("kind", "first"), [*((kind, "HAProxy") for kind in SQUATTERS), ("silent", "portal")]
)
def test_another_user_at_the_port_of_a_server_that_has_ended(
    cluster: Cluster, alice: Api, kind: str, first: str
) -> None:
    """Another server is started at once, whoever meets bob's program first."""
    ways: dict[str, Callable[[], requests.Response]] = {
        "HAProxy": lambda: send_request(alice, "GET", FILE),
        "portal": lambda: alice("GET", "/files/list/home"),
    }
    assert all(way().status_code == 200 for way in ways.values())
    port = file_server_port(cluster, "alice")
    with ExitStack() as stack:
        stack.enter_context(cluster.ports_free_at_once("login"))
        end_file_servers(cluster, "alice")
        seen = stack.enter_context(squatter(cluster, kind, port))
        answers: list[requests.Response] = []
        seconds = [duration(lambda: answers.append(ways[first]()))]
        seconds += [duration(lambda: answers.append(way())) for way in ways.values()]  # noqa: B023
        print(kind, first, [round(each, 2) for each in seconds])
        assert [answer.status_code for answer in answers] == [200] * 3, answers[0].text
        assert file_server_port(cluster, "alice") != port
        assert "met" in seen(), "somebody met it"
        assert "GOT" not in seen()
    assert seconds[0] < 12, seconds
    assert max(seconds[1:]) < USUAL, seconds


def test_one_login_has_one_route(cluster: Cluster, logged_in: LoggedIn) -> None:
    browser = logged_in("alice")
    count = "select count(*) from \"grant\" where label = '~files' and user = 'alice'"

    def grants() -> int:
        return int(in_database(cluster, count).strip("[(,)]\n"))

    assert browser.http.get(f"{cluster.url}/files/home").status_code == 200
    before = grants()
    cookies = {
        cookie.name: cookie.value or ""
        for cookie in browser.http.cookies
        if not cookie.name.endswith("slipway-files")
    }
    for _ in range(30):
        with http_session() as http:
            url = f"{cluster.url}{FILE}"
            answer = http.get(url, cookies=cookies, allow_redirects=False, timeout=60)
        assert answer.status_code == 307
    assert grants() <= before + 1
