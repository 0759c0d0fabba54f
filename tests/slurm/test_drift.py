"""The bars after 200 sessions: still equal to Slurm's own figures, to the core and MiB."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.client import OVER, Api, Json
from tests.support.cluster import Cluster, wait_for

PEOPLE = ("alice", "bob", "admin")
ENOUGH = 200
"""Number of sessions launched and ended."""
AT_MOST = 60
"""Maximum number of concurrent sessions."""
PER_USER = (3, 3 * 1024)
"""Cores and MiB that the embedded cluster permits per user (MaxTRESPerUser)."""

Amounts = tuple[int, int]
"""Cores and MiB."""
QUERY = r"""
squeue --all --noheader --states=all --Format='UserName:|,State:|,tres-alloc:|'
echo ==
scontrol --oneliner show nodes
"""


@dataclass(frozen=True)
class Truth:
    """The figures of squeue and scontrol."""

    held: dict[str, Amounts]
    free: Amounts


def _mb(text: str) -> int:
    match = re.fullmatch(r"([0-9.]+)([MGmg])", text)
    assert match, text
    return round(float(match[1]) * (1024 if match[2] in "Gg" else 1))


def truth(cluster: Cluster) -> Truth:
    """Run Slurm's own commands, and add up without code of the portal."""
    queue, _, nodes = cluster.shell("login", QUERY).partition("==\n")
    held: dict[str, Amounts] = defaultdict(lambda: (0, 0))
    for line in queue.splitlines():
        user, state, tres = map(str.strip, line.split("|")[:3])
        if state in ("RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED", "SIGNALING"):
            found = dict(item.split("=") for item in tres.split(",") if "=" in item)
            cores, memory = held[user]
            held[user] = (cores + int(found["cpu"]), memory + _mb(found["mem"]))
    free = [0, 0]
    for line in nodes.splitlines():
        node = dict(word.split("=", 1) for word in line.split() if "=" in word)
        free[0] += int(node["CPUEfctv"]) - int(node["CPUAlloc"])
        free[1] += int(node["RealMemory"]) - int(node["AllocMem"])
    return Truth(dict(held), (free[0], free[1]))


def shown(api: Api) -> tuple[Amounts, Amounts]:
    """The figures of the bars: held, and available."""
    found = api.ask("GET", "/usage")
    cpus, memory = found["cpus"], found["memory"]
    return (cpus["mine"], _mb(memory["mine"])), (cpus["available"], _mb(memory["available"]))


def expected(user: str, now: Truth) -> tuple[Amounts, Amounts]:
    """The figures that the bars must show."""
    held = now.held.get(user, (0, 0))
    cores, memory = (
        max(min(most - mine, free), 0)
        for most, mine, free in zip(PER_USER, held, now.free, strict=True)
    )
    return held, (cores, memory)


class Storm:
    """Users who launch and end at random; half of the ends come from outside the portal."""

    def __init__(self, apis: list[Api], cluster: Cluster) -> None:
        self.apis = apis
        self.cluster = cluster
        self.chance = random.Random(200)
        self.live: list[tuple[Api, Json]] = []
        self.launched = 0
        self.compared: list[Truth] = []

    def launch(self) -> None:
        """Launch some sessions of random sizes."""
        api = self.chance.choice(self.apis)
        count = self.chance.randint(1, 20)
        size = {
            "cpus": self.chance.choice([1, 1, 2]),
            "memory": f"{self.chance.randint(256, 900)}m",
        }
        made = api.launch_all(resources=size, count=count)
        self.launched += len(made)
        self.live += [(api, session) for session in made]

    def end(self, many: int) -> None:
        """End some sessions, in any state: by the portal, or by Slurm's own command."""
        self.chance.shuffle(self.live)
        gone, self.live = self.live[:many], self.live[many:]
        half = len(gone) // 2
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda pair: pair[0].stop(pair[1]["id"]), gone[:half]))
        jobs = [session["job_id"] for _api, session in gone[half:]]
        if jobs:
            self.cluster.run("login", "scancel", "--quiet", *jobs)

    def from_the_command_line(self) -> None:
        """Submit a short job without the portal."""
        user = self.chance.choice(PEOPLE)
        script = f"#!/bin/sh\nsleep {self.chance.randint(1, 6)}\nexit {self.chance.randint(0, 1)}\n"
        size = [
            f"--mem={self.chance.randint(100, 900)}",
            f"--cpus-per-task={self.chance.choice([1, 2])}",
        ]
        argv = ["sbatch", "--output=/dev/null", "--chdir=/tmp", *size]
        self.cluster.run("login", *argv, user=user, stdin=script)

    def compare(self) -> None:
        """When Slurm reports the same before and after, the bars agree with it."""

        def same() -> Truth | None:
            before = truth(self.cluster)
            bars = [shown(api) for api in self.apis]
            if truth(self.cluster) != before:
                return None
            right = [expected(api.user, before) for api in self.apis]
            return before if bars == right else None

        self.compared.append(wait_for("bars that are what Slurm says", same, 30, 0.5))


@pytest.fixture
def storm(make_api: MakeApi, cluster: Cluster) -> Iterator[Storm]:
    """All three users; everything ends with the test."""
    found = Storm([make_api(user) for user in PEOPLE], cluster)
    yield found
    found.end(len(found.live))
    for user in PEOPLE:
        cluster.run("login", "scancel", "--quiet", f"--user={user}")
    for api in found.apis:
        for session in api.launched:
            api.wait_state(session, *OVER, seconds=90)


def test_bars_after_two_hundred_launches_and_ends(storm: Storm) -> None:
    storm.compare()
    while storm.launched < ENOUGH:
        storm.launch()
        if storm.chance.random() < 0.4:
            storm.from_the_command_line()
        crowded = max(len(storm.live) - AT_MOST, 0)
        storm.end(crowded + storm.chance.randint(0, 12))
        if storm.chance.random() < 0.4:
            storm.compare()
    storm.compare()
    storm.end(len(storm.live))
    for user in PEOPLE:  # jobs submitted by hand
        storm.cluster.run("login", "scancel", "--quiet", f"--user={user}")
    wait_for("an empty cluster", lambda: not truth(storm.cluster).held, 60)
    storm.compare()
    busy = [now for now in storm.compared if now.held]
    print(f"{storm.launched} sessions, {len(storm.compared)} comparisons, {len(busy)} under load")
    assert len(busy) >= 5, "the comparisons showed nothing"
