"""Two portal hosts: what is shut at one is shut at the other, whatever is killed.

Only on a cluster with two hosts: `make test-hosts`, or a running one of `HOSTS=2 make up`.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
import requests
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from tests.client import Api, Visitor, login
from tests.cluster import Cluster, wait_for

TINY = {"cpus": 1, "memory": "400m"}
OPERATIONS = 100
MOST_OPEN_SECONDS = 5.0
PROCESSES = ("web", "worker", "haproxy")
SEED = 20261124


@pytest.fixture(scope="module")
def both(cluster: Cluster) -> list[Api]:
    """Alice's API clients of the two hosts."""
    token = login(cluster, "alice")
    second = Cluster(cluster.project, cluster.port)
    second.__dict__["url"] = second.run("portal2", "printenv", "SLIPWAY_PUBLIC_URL").strip()
    return [Api(cluster, "alice", token), Api(second, "alice", token)]


@pytest.fixture(scope="module")
def session(both: list[Api]) -> Iterator[str]:
    yield both[0].running(resources=TINY)["id"]
    both[0].clean()


def at(visitor: Visitor, api: Api) -> Visitor:
    """The same browser, at the other host: with the same cookies."""
    here, there = urlsplit(visitor.origin), urlsplit(api.cluster.url)
    name = here.netloc.partition(":")[0]
    found = Visitor(f"{here.scheme}://{name}:{there.port}/")
    found.http = visitor.http
    return found


def reaches(visitor: Visitor) -> bool:
    """Whether requests reach the app."""
    try:
        answer = visitor.get("/", timeout=3, allow_redirects=False)
    except requests.RequestException:
        return False
    return answer.status_code == 200 and "ttyd" in answer.text.lower()


def ends(stream: ClientConnection) -> bool:
    """Whether a stream is cut, after what was sent before."""
    try:
        while True:
            stream.recv(timeout=2)
    except ConnectionClosed:
        return True
    except TimeoutError:
        return False


def within(seconds: float, probe: Callable[[], bool]) -> float:
    begun = time.monotonic()
    wait_for("it", probe, seconds, pause=0.05)
    return time.monotonic() - begun


@pytest.mark.parametrize("how", ["close", "logout"])
def test_what_is_shut_at_one_host_is_shut_at_the_other(
    both: list[Api], session: str, how: str
) -> None:
    a, b = both
    api = a
    if how == "logout":
        api = Api(a.cluster, "alice", login(a.cluster, "alice"))
    here = api.open(session, "terminal")
    there = at(here, b)
    within(2, lambda: reaches(there))
    stream = there.websocket("/ws", "tty")
    if how == "close":
        path = f"/sessions/{session}/apps/terminal"
    else:
        newest = max(api.ask("GET", "/tokens")["tokens"], key=lambda token: token["created"])
        path = f"/tokens/{newest['id']}"
    answer = api("DELETE", path)
    assert answer.status_code < 300, answer.text
    done = time.monotonic()
    assert not reaches(here)
    within(2, lambda: not reaches(there))
    assert ends(stream)
    assert time.monotonic() - done < 3


def test_one_worker_runs_and_another_takes_over(both: list[Api]) -> None:
    cluster = both[0].cluster

    def holder() -> str:
        lines = cluster.run("portal", "slipway", "check", check=False).splitlines()
        return next((line.split()[5] for line in lines if "the worker runs on" in line), "")

    first = wait_for("a worker", holder, 30)
    cluster.ctl("daemon", "stop", first, "worker")
    try:
        second = wait_for("another worker", lambda: holder() if holder() != first else "", 15)
        assert {first, second} == {"portal", "portal2"}
    finally:
        cluster.ctl("daemon", "start", first, "worker")


@dataclass
class Door:
    """One browser's access to an app, watched at both hosts."""

    visitors: list[Visitor]
    shut: float | None = None
    late: list[str] = field(default_factory=list)


class Watch:
    """Asks all doors all the time; an open one long after it was shut is noted."""

    def __init__(self) -> None:
        self.doors: list[Door] = []
        self.asked = 0
        self.late: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for door in list(self.doors)[-12:]:
                for visitor in door.visitors:
                    shut, asked = door.shut, time.monotonic()
                    found = reaches(visitor)
                    self.asked += 1
                    if found and shut is not None and asked - shut > MOST_OPEN_SECONDS:
                        self.late.append(f"{visitor.origin}: {asked - shut:.1f} s")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask all doors once more, and end."""
        self._stop.set()
        self._thread.join()


def test_no_door_stays_open_while_everything_is_killed(both: list[Api], session: str) -> None:
    cluster, dice, watch = both[0].cluster, random.Random(SEED), Watch()
    done: dict[str, int] = {}
    current: Door | None = None
    try:
        for number in range(OPERATIONS):
            api = dice.choice(both)
            what = dice.choice(["open", "open", "shut", "kill"])
            path = f"/sessions/{session}/apps/terminal"
            try:
                if what == "kill" and number % 2 == 0:
                    host, process = dice.choice(["portal", "portal2"]), dice.choice(PROCESSES)
                    cluster.ctl("daemon", "kill", host, process, check=False)
                elif what == "open" and (current is None or current.shut is not None):
                    link = api("POST", path, timeout=10).json()["url"]
                    visitor = Visitor(link)
                    visitor.get(link.removeprefix(visitor.origin), timeout=5)
                    current = Door([at(visitor, one) for one in both])
                    watch.doors.append(current)
                elif what == "shut" and current is not None and current.shut is None:
                    answer = api("DELETE", path, timeout=15)
                    if answer.status_code < 300:
                        current.shut = time.monotonic()
                else:
                    continue
            except (requests.RequestException, KeyError, ValueError):
                continue  # what was killed did not answer
            done[what] = done.get(what, 0) + 1
            time.sleep(dice.random() * 0.3)
        if current is not None and current.shut is None:

            def closed() -> bool:
                try:
                    return both[0]("DELETE", path, timeout=15).status_code < 300
                except requests.RequestException:
                    return False

            wait_for("closing", closed, 30)
            current.shut = time.monotonic()
        time.sleep(MOST_OPEN_SECONDS + 1)
    finally:
        watch.stop()
    print(done, watch.asked)
    assert watch.late == []
    assert min(done[what] for what in ("open", "shut", "kill")) >= 3
    assert watch.asked > 100
