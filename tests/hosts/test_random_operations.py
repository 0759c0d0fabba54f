"""Random operations at two portal hosts, of which processes and whole hosts are killed (kill -9).

SLIPWAY_OPERATIONS chooses how many; 1,000 take about half an hour.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import requests
from websockets.exceptions import WebSocketException

from tests.hosts.doors import MOST_OPEN_SECONDS, Door, Watch, at, reaches
from tests.support.client import Api, Visitor, login
from tests.support.cluster import Cluster, healthy, wait_for

OPERATIONS = int(os.environ.get("SLIPWAY_OPERATIONS", "100"))
SEED = int(os.environ.get("SLIPWAY_SEED", "20261124"))
SECONDS = float(os.environ.get("SLIPWAY_SECONDS", "5400"))
"""They are given up after this time; the doors are looked at nevertheless."""
HOSTS = ("portal", "portal2")
PROCESSES = ("web", "worker", "haproxy")
TINY = {"cpus": 1, "memory": "400m"}
SESSIONS = 2
TERMINAL, LISTING = "ttyd", "directory listing"
PUBLIC = {"asked": "cd && exec python -m http.server $PORT", "public": True}
USERS = ("alice", "bob")
LOGIN_PAUSE = 15.0
"""Seconds between two log-ins of one user; ten a minute are permitted."""
WEIGHTS = {
    "open": 30, "publish": 10, "hide": 9, "close": 14, "log out": 7, "end": 3,
    "kill web": 7, "kill worker": 7, "kill haproxy": 7, "kill host": 3, "reload haproxy": 3,
}  # fmt: skip


class Refused(Exception):
    """What was killed did not answer, or it is not possible now: nothing is known to be done."""


def sure(answer: requests.Response) -> requests.Response:
    """An answer that says that something was done; raises Refused."""
    if answer.status_code >= 300:
        raise Refused(f"{answer.status_code}")
    return answer


class Trouble:
    """Somebody who destroys what others use."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster, self._dice, self._lock = cluster, random.Random(seed), threading.Lock()
        self._down: tuple[str, float] | None = None

    def make(self, what: str) -> None:
        """Kill a process or a whole host, or have HAProxy reloaded."""
        action, _, name = what.partition(" ")
        with self._lock:
            host = self._dice.choice(HOSTS)
            if name != "host":
                self._cluster.ctl("daemon", action, host, name, check=False)
            elif self._down is None:
                self._cluster.ctl("kill", host)
                self._down = (host, time.monotonic() + self._dice.uniform(0.0, 9.0))
            else:
                raise Refused("one host is down already")

    def restart(self, *, now: bool = False) -> None:
        """Start the host that was killed, once it is time."""
        with self._lock:
            if self._down is not None and (now or time.monotonic() > self._down[1]):
                self._cluster.ctl("start", self._down[0])
                self._down = None


class Site:
    """Somebody who uses two hosts."""

    def __init__(
        self, user: str, clusters: Sequence[Cluster], watch: Watch, trouble: Trouble, seed: int
    ) -> None:
        self.user, self.clusters, self.watch, self.trouble = user, clusters, watch, trouble
        self.dice = random.Random(seed)
        token = login(clusters[0], user)
        self.both = [Api(each, user, token) for each in clusters]
        self.sessions: list[str] = []
        self.logins: dict[str, list[Api]] = {}
        self.logged_in = 0.0
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def api(self) -> Api:
        """A client of one host."""
        return self.dice.choice(self.both)

    def session(self) -> str:
        """One of the sessions, which may not run yet."""
        return self.dice.choice(self.sessions)

    def shut(self, which: Callable[[Door], bool]) -> None:
        """Note that all these doors are shut."""
        for door in self.watch.doors:
            if which(door):
                door.close()

    # What people do

    def launch(self) -> None:
        """Have as many sessions as before."""
        while len(self.sessions) < SESSIONS:
            body = {"environment": "python", "resources": TINY}
            answer = sure(self.api()("POST", "/sessions", json=body, timeout=15))
            self.sessions += [one["id"] for one in answer.json()["sessions"]]

    def open(self) -> None:
        """Open a terminal in a browser, with streams at each host that knows of it."""
        name, clients = self.dice.choice([("", list(self.both)), *self.logins.items()])
        session = self.session()
        path = f"/sessions/{session}/apps/terminal"
        link = sure(self.dice.choice(clients)("POST", path, timeout=10)).json()["url"]
        visitor = Visitor(link)
        visitor.get(link.removeprefix(visitor.origin), timeout=5)
        if not visitor.cookie:
            raise Refused("no cookie")
        visitors = [at(visitor, api).copy() for api in self.both]
        door = Door(self.user, session, TERMINAL, visitors, login=name)
        for each in visitors:
            if reaches(each):
                with suppress(OSError, WebSocketException):
                    door.streams.append(each.websocket("/ws", "tty"))
        self.watch.doors.append(door)

    def public_door(self, session: str) -> Door | None:
        """The door of a public app, which has the same address each time."""
        return next(
            (one for one in self.watch.doors if (one.session, one.words) == (session, LISTING)),
            None,
        )

    def publish(self) -> None:
        """Make an app public."""
        session = self.session()
        if (door := self.public_door(session)) is not None:
            door.shut = None  # also if the answer is lost
        answer = sure(
            self.api()("POST", f"/sessions/{session}/apps/webapp", json=PUBLIC, timeout=10)
        )
        if door is None and answer.json()["public"]:
            address = Visitor(answer.json()["public_url"])
            visitors = [at(address, api).copy() for api in self.both]
            self.watch.doors.append(Door(self.user, session, LISTING, visitors))

    def hide(self) -> None:
        """Make it private."""
        session = self.session()
        path = f"/sessions/{session}/apps/webapp"
        sure(self.api()("POST", path, json={"public": False}, timeout=15))
        self.shut(lambda door: (door.session, door.words) == (session, LISTING))

    def close(self) -> None:
        """Close a terminal."""
        session = self.session()
        sure(self.api()("DELETE", f"/sessions/{session}/apps/terminal", timeout=15))
        self.shut(lambda door: (door.session, door.words) == (session, TERMINAL))

    def end(self) -> None:
        """End a session, and launch another one."""
        session = self.session()
        sure(self.api()("DELETE", f"/sessions/{session}", timeout=15))
        self.shut(lambda door: door.session == session)
        self.sessions.remove(session)

    def log_out(self) -> None:
        """Revoke a login with which doors were opened; log in, if there is none."""
        if not self.logins:
            self.log_in()
            return
        name = self.dice.choice(sorted(self.logins))
        sure(self.api()("DELETE", f"/tokens/{name}", timeout=15))
        self.shut(lambda door: door.login == name)
        del self.logins[name]

    def log_in(self) -> None:
        """Log in once more."""
        if time.monotonic() - self.logged_in < LOGIN_PAUSE:
            raise Refused("too soon")
        self.logged_in = time.monotonic()
        try:
            token = login(self.dice.choice(self.clusters), self.user)
        except AssertionError as error:
            raise Refused(str(error)) from error
        clients = [Api(each, self.user, token) for each in self.clusters]
        tokens = sure(clients[0]("GET", "/tokens", timeout=10)).json()["tokens"]
        newest: dict[str, Any] = max(tokens, key=lambda one: one["created"])
        self.logins[newest["id"]] = clients

    def do(self, what: str) -> None:
        """Do one thing; raises Refused, or what requests raises."""
        self.trouble.restart()
        self.launch()
        if what.startswith(("kill", "reload")):
            self.trouble.make(what)
        else:
            getattr(self, what.replace(" ", "_"))()

    def run(self, operations: int) -> None:
        """Do so many things that happened."""
        begun = time.monotonic()
        while self.done.total() < operations and time.monotonic() - begun < SECONDS:
            what = self.dice.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
            try:
                self.do(what)
            except (requests.RequestException, Refused):
                self.refused[what] += 1
                time.sleep(0.2)
                assert self.refused.total() < 20 * OPERATIONS
                continue
            self.done[what] += 1
            if self.done.total() % 50 == 0:
                print(f"{time.strftime('%H:%M:%S')} {self.user}: {self.done.total()}", flush=True)
            time.sleep(self.dice.random() * 0.3)

    def finish(self) -> None:
        """End everything, also what is left of lost answers."""
        api = self.both[0]
        for session in api.list(state="running"):
            path = f"/sessions/{session['id']}"
            wait_for("its end", lambda path=path: api("DELETE", path).ok, 30)  # type: ignore[misc]
        self.shut(lambda door: door.user == self.user)


# The client of WebSockets leaves a socket behind when HAProxy is killed during the TLS handshake.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_door_stays_open_while_everything_is_killed(clusters: list[Cluster]) -> None:
    watch, trouble = Watch(), Trouble(clusters[0], SEED)
    try:
        people = [
            Site(user, clusters, watch, trouble, SEED + number)
            for number, user in enumerate(USERS, start=1)
        ]
        with ThreadPoolExecutor(len(people)) as pool:
            for future in [pool.submit(one.run, OPERATIONS // len(people)) for one in people]:
                future.result()
        trouble.restart(now=True)
        for cluster in clusters:
            wait_for("the portal", partial(healthy, cluster), 90)
        for one in people:
            one.finish()
        time.sleep(MOST_OPEN_SECONDS + 3)
    finally:
        watch.stop()
        trouble.restart(now=True)
    done = sum((one.done for one in people), Counter())
    refused = sum((one.refused for one in people), Counter())
    print(dict(done), "refused:", dict(refused), dict(watch.tried))
    assert watch.late == []
    assert done.total() >= OPERATIONS - len(USERS)
    assert all(done[what] >= weight * OPERATIONS // 400 for what, weight in WEIGHTS.items())
    tried = watch.tried
    assert min(tried["open before"], tried["closed after"]) > OPERATIONS
    assert tried["limited after"] < tried["closed after"] // 50
    assert tried["streams"] >= OPERATIONS // 20
