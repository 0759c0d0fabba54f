"""JupyterHub is killed while its servers start and end: each is adopted or ended, none runs twice.

HUB_KILLS=50 kills it more often than the default.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import requests

from tests.slurm.conftest import MakeHub
from tests.support.apps import Kernel
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.hubs import (
    HubApi,
    kill,
    live_jobs,
    path_of,
    session_at,
    sessions_at,
    sized,
    wait_back,
)

KILLS = int(os.environ.get("HUB_KILLS", "4"))
SETTLED = 90.0
"""Seconds after a kill in which every job is adopted or ended; 15 on an idle machine."""
START, STOP = 9.0, 4.0
"""Seconds after a request within which JupyterHub is killed: about as long as it takes."""
TINY = sized(1, "350m")
SERVERS = ("one", "two")


@pytest.fixture(scope="module")
def hub(make_hub: MakeHub) -> Iterator[HubApi]:
    """Alice at JupyterHub; her servers end with the file."""
    made = make_hub("alice")
    made.clean()
    yield made
    made.clean()


@dataclass(frozen=True)
class Blow:
    """One kill, and what became of the server that was starting or ending."""

    action: str
    delay: float
    adopted: bool
    seconds: float
    """From the kill until it was settled."""

    def __str__(self) -> str:
        fate = "adopted" if self.adopted else "ended"
        return f"{self.action} + {self.delay:.1f} s: {fate} after {self.seconds:.1f} s"


def _cut_off(ask: Callable[[str], object], name: str) -> threading.Thread:
    """Send a request that JupyterHub may not live to answer."""

    def send() -> None:
        with contextlib.suppress(requests.RequestException):
            ask(name)

    thread = threading.Thread(target=send)
    thread.start()
    return thread


def _killed_during(action: str, name: str, delay: float, hub: HubApi) -> float:
    """Kill JupyterHub so long after a request; returns when, once it answers again."""
    ask = hub.stop if action == "stop" else lambda server: hub.start(server, TINY)
    asking = _cut_off(ask, name)
    time.sleep(delay)
    killed = time.monotonic()
    kill(hub.cluster)
    asking.join()
    wait_back(hub.cluster)
    return killed


def _settled(name: str, hub: HubApi, api: Api) -> bool | None:
    """Whether the server was adopted (True) or has ended (False); None if neither holds yet."""
    live = sessions_at(api, path_of(hub.user, name), state="running")
    assert len(live) <= 1, f"{name} runs twice: {live}"
    server = hub.servers().get(name)
    if live and server and server["ready"]:
        return hub.visit(name).get("/api/status").status_code == 200 or None
    return None if live or server else False


def _wait_settled(name: str, hub: HubApi, api: Api) -> bool:
    return wait_for(
        f"{name} adopted or ended",
        lambda: None if (found := _settled(name, hub, api)) is None else [found],
        SETTLED,
    )[0]


def _check_jobs(cluster: Cluster, api: Api) -> None:
    """Slurm runs what the portal knows of, and nothing else."""

    def same() -> bool:
        jobs = live_jobs(cluster, api.user)
        return sorted(jobs) == sorted(session["id"] for session in api.list(state="running"))

    wait_for("as many jobs as sessions", same, SETTLED)


@pytest.mark.timeout(240 + 60 * KILLS)
def test_killed_during_starts_and_stops(hub: HubApi, researcher: Api, cluster: Cluster) -> None:
    since, chance = cluster.clock(), random.Random("hub kills")
    kept = _kept(hub, researcher)
    kernel = Kernel(hub.visit())
    kernel.run("kept = 'treasure'")
    alive = dict.fromkeys(SERVERS, False)
    blows = []
    for number in range(KILLS):
        name = SERVERS[number % len(SERVERS)]
        action, longest = ("stop", STOP) if alive[name] else ("start", START)
        delay = chance.uniform(0, longest)
        killed = _killed_during(action, name, delay, hub)
        alive[name] = _wait_settled(name, hub, researcher)
        blows.append(Blow(action, delay, alive[name], time.monotonic() - killed))
        print(blows[-1])
        assert blows[-1].seconds <= SETTLED
        assert session_at(researcher, path_of("alice"))["id"] == kept["id"]
        kernel.connect()  # JupyterHub starts its proxy again, too
        assert kernel.run("print(kept)").text == "treasure\n"
        _check_jobs(cluster, researcher)
    kernel.close()
    _report(blows)
    names = Counter(job.name for job in cluster.accounted(since) if job.user == "alice")
    assert set(names.values()) == {1}, names
    assert hub.servers()[""]["ready"]


def _kept(hub: HubApi, api: Api) -> Json:
    """A server that runs through all of it, and no other, also in a repetition of the test."""
    hub.clean()
    hub.running("", TINY)
    return session_at(api, path_of("alice"))


def _report(blows: list[Blow]) -> None:
    fates = Counter((blow.action, "adopted" if blow.adopted else "ended") for blow in blows)
    print(dict(fates), f"the slowest {max(blow.seconds for blow in blows):.1f} s")


def test_killed_while_a_server_waits_in_the_queue(
    hub: HubApi, researcher: Api, cluster: Cluster
) -> None:
    """JupyterHub cannot show a start from before its own; nobody would wait for the job."""
    wait_back(cluster)
    cluster.run("ctl", "scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        assert hub.start("waits", TINY).status_code == 202
        path = path_of("alice", "waits")
        wait_for("its job", lambda: sessions_at(researcher, path, state="running") or None)
        kill(cluster)
        wait_back(cluster)
        assert not _wait_settled("waits", hub, researcher)
        _check_jobs(cluster, researcher)
    finally:
        cluster.run("ctl", "scontrol", "update", "PartitionName=main", "State=UP")
