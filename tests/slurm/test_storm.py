"""Forty launches at the same moment, each sent twice and cut off the first time: none doubled."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
import requests

from tests.slurm.conftest import MakeApi
from tests.support.client import OVER, SMALL, Api, Json
from tests.support.cluster import Cluster, wait_for

MANY = 40
PEOPLE = ("alice", "bob", "admin")
PATIENCE = 120.0


@dataclass
class Launcher:
    """A client that launches one session, over a connection that breaks."""

    api: Api
    key: str = field(default_factory=lambda: f"storm-{uuid.uuid4()}")
    name: str = field(default_factory=lambda: f"storm{uuid.uuid4().hex[:12]}")
    answers: list[tuple[int, str]] = field(default_factory=list)
    """Each response's status and session id."""
    seconds: float = 0.0

    def __call__(self, barrier: threading.Barrier, patience: float) -> None:
        """Send, disconnect, and resend at once, as a client does that got no response."""
        barrier.wait(PATIENCE)
        begun = time.monotonic()
        with suppress(requests.RequestException):  # nobody receives the response, if there is one
            self._note(self.send(patience))
        self._note(self.send(PATIENCE))
        self.seconds = time.monotonic() - begun

    def send(self, seconds: float) -> requests.Response:
        """Send the launch request."""
        body = SMALL | {"name": self.name, "resources": {"cpus": 1, "memory": "300m"}}
        headers = {"Idempotency-Key": self.key}
        return self.api("POST", "/sessions", json=body, headers=headers, timeout=(10.0, seconds))

    def again(self) -> None:
        """Send it again at the end."""
        self._note(self.send(PATIENCE))

    def _note(self, answer: requests.Response) -> None:
        body: Json = answer.json()
        found = [session["id"] for session in body.get("sessions", [])]
        self.answers.append((answer.status_code, ",".join(found) or answer.text))

    @property
    def ids(self) -> set[str]:
        """All ids in the responses."""
        return {identifier for _status, identifier in self.answers}


@pytest.fixture
def launchers(make_api: MakeApi) -> Iterator[list[Launcher]]:
    """Forty clients of three users; what they launched ends with the test."""
    found = [Launcher(make_api(PEOPLE[number % 3])) for number in range(MANY)]
    yield found
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(_end, found))


def _end(launcher: Launcher) -> None:
    sessions = [s["id"] for s in launcher.api.list() if s["name"] == launcher.name]
    for session in sessions:
        launcher.api.stop(session)
    for session in sessions:
        launcher.api.wait_state(session, *OVER, seconds=PATIENCE)


def _names(cluster: Cluster) -> Counter[str]:
    """How often each job name occurs in Slurm's queue."""
    queue = cluster.run("login", "squeue", "--all", "--noheader", "--states=all", "--format=%j")
    return Counter(queue.split())


def test_forty_parallel_launches_create_forty_sessions(
    launchers: list[Launcher], cluster: Cluster
) -> None:
    since = cluster.clock()
    before = _names(cluster)
    chance, barrier = random.Random(40), threading.Barrier(MANY)
    begun = time.monotonic()
    with ThreadPoolExecutor(MANY) as pool:
        for launcher in launchers:
            pool.submit(launcher, barrier, chance.uniform(0.02, 1.5))
    took = time.monotonic() - begun
    for launcher in launchers:
        launcher.again()

    statuses = Counter(status for launcher in launchers for status, _ in launcher.answers)
    slowest = max(launcher.seconds for launcher in launchers)
    completed = sum(len(launcher.answers) - 2 for launcher in launchers)
    print(f"{MANY} launches in {took:.1f} s, the slowest {slowest:.1f} s, {completed} not cut off")
    assert set(statuses) == {201}, [launcher.answers for launcher in launchers]
    assert completed < MANY, "no connection was cut"
    assert all(len(launcher.ids) == 1 for launcher in launchers), "a key gave two sessions"
    ids = {launcher.ids.pop() for launcher in launchers}
    assert len(ids) == MANY

    def handed_over() -> Counter[str] | None:
        new = _names(cluster) - before
        return new if set(new) >= ids else None

    assert wait_for("all of them in Slurm's queue", handed_over, 60) == Counter(ids)
    stored = [s for user in PEOPLE[:2] for s in _stored(launchers, user)]
    stored += _stored(launchers, "admin", owner="admin")
    assert sorted(s["id"] for s in stored) == sorted(ids)
    jobs = [s["job_id"] for s in stored]
    assert len(set(jobs) - {None}) == MANY
    accounted = Counter(job.name for job in cluster.accounted(since))
    assert {name: accounted[name] for name in ids} == dict.fromkeys(ids, 1)


def _stored(launchers: list[Launcher], user: str, **query: str) -> list[Json]:
    """The sessions of the storm in a user's list."""
    api = next(launcher.api for launcher in launchers if launcher.api.user == user)
    names = {launcher.name for launcher in launchers}
    return [session for session in api.list(**query) if session["name"] in names]


def test_an_idle_connection_still_gets_its_response(make_api: MakeApi) -> None:
    """gunicorn drops connections idle for two seconds; a request just then must not fail."""
    apis = [make_api("alice") for _ in range(24)]
    chance = random.Random(2)
    with ThreadPoolExecutor(len(apis)) as pool:
        for _ in range(5):
            assert set(pool.map(_ask, apis)) == {200}
            time.sleep(chance.uniform(1.9, 3.1))


def _ask(api: Api) -> int:
    return api("GET", "/me").status_code
