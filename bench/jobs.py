"""The cost of following 50,000 jobs, against parsing every line of squeue.

    python -m bench.jobs [--jobs 50000] [--ended 500000] [--changed 500] [--rounds 5]

needs no cluster: squeue's output is made up, the database is SQLite in a temporary folder.

Printed: the processor time of one poll of the worker (all that it does with squeue's output) and
of storing what changed; the same for a parse of every line; their ratio; and the duration of pages
of the list. Reading the output from the login node is not included (see bench/list.py).
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from portal.adapters.slurm.commands import SEPARATOR
from portal.adapters.slurm.queue import QueueReader, squeue_parse
from portal.core.cluster.gpu_offers import NO_GPUS
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.cluster.queue import queue_positions
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.query import JobQuery, JobSort
from portal.services.cluster import ClusterReader
from portal.services.jobs.follower import JobFollower
from portal.store.engine import open_database, upgrade
from portal.store.heartbeats import HeartbeatStore
from portal.store.jobs.store import JobStore
from portal.store.status import StatusStore

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
RUNNING = 20
"""One job of so many runs."""
WAITING = 500
"""One job of so many is a session, whose position is determined."""


def line(number: int, priority: int = 1) -> str:
    """A job as squeue prints it."""
    runs = number % RUNNING == 0
    started = str(1795390000 + number) if runs else "N/A"
    words = [
        str(number), f"user{number % 300}", "RUNNING" if runs else "PENDING",
        "None" if runs else "Priority", f"node{number % 900:04d}" if runs else "",
        str(1795380000 + number), started, started, "0:0", "main",
        str(4_294_900_000 - number * 7 + priority), "research", "normal",
        "cpu=4,mem=16G,node=1,billing=4", "1-00:00:00", "0", str(number), "N/A", "N/A", "N/A", "",
    ]  # fmt: skip
    return SEPARATOR.join(words)


class Bench:
    """A worker's part for jobs, on made-up output."""

    def __init__(self, folder: Path, jobs: int, changed: int) -> None:
        url = f"sqlite:///{folder / 'bench.db'}"
        upgrade(url)
        engine = open_database(url)
        self.store = JobStore(engine)
        self.lines = [line(number) for number in range(1, jobs + 1)]
        self.changed = changed
        self.round = 0
        self.queue = QueueReader()
        none: Any = None
        self.reader = ClusterReader(none, StatusStore(engine), HeartbeatStore(engine), NO_GPUS)
        week = timedelta(days=7)
        self.follower = JobFollower(
            store=self.store,
            scheduler=none,
            clock=lambda: NOW,
            history=week,
            retention=week,
            listed_tasks=week,
        )

    def printed(self) -> str:
        """The next output: some jobs have another priority than in the one before."""
        self.round += 1
        for number in range(self.changed):
            index = (self.round * self.changed + number) % len(self.lines)
            self.lines[index] = line(index + 1, self.round)
        return "\n".join([*self.lines, ""])

    def poll(self, text: str) -> None:
        """What the thread that polls Slurm does with the output."""
        queue = self.queue.read(text)
        jobs = {number: job.report for number, job in queue.items()}
        self.reader.note_jobs(jobs.values(), NOW)
        queue_positions(jobs.values(), list(jobs.values())[::WAITING])
        self.follower.note_queue(queue, NOW)


def took(action: Callable[[], object]) -> float:
    """Seconds of this process's processor time."""
    start = time.process_time()
    action()
    return time.process_time() - start


def ended(number: int) -> Job:
    """A job that ended a while ago."""
    then = NOW - timedelta(minutes=number % 100_000)
    report = JobReport(
        str(10_000_000 + number), f"user{number % 300}", JobState.COMPLETED, submitted=then,
        start=then, end=then, partition="main", cpus=4, nodes=("node0001",),
    )  # fmt: skip
    return Job(report)


def measure(jobs: int, ended_jobs: int, changed: int, rounds: int) -> dict[str, float]:
    """Durations in milliseconds."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), jobs, changed)
        first = bench.printed()
        durations = {"first poll": took(partial(bench.poll, first))}
        durations["first store"] = took(bench.follower.follow)
        times: dict[str, list[float]] = {"poll": [], "store": [], "plain": []}
        for _ in range(rounds):
            text = bench.printed()
            times["poll"].append(took(partial(bench.poll, text)))
            times["store"].append(took(bench.follower.follow))
            times["plain"].append(took(partial(squeue_parse, text)))
        durations |= {name: statistics.median(each) for name, each in times.items()}
        for start in range(0, ended_jobs, 5000):
            bench.store.settle(map(ended, range(start, min(start + 5000, ended_jobs))))
        for name, query in QUERIES.items():
            bench.store.query(query, NOW)
            durations[name] = took(partial(bench.store.query, query, NOW))
        durations["slowest order"] = max(
            took(partial(bench.store.query, JobQuery(state=tab, sort=sort), NOW))
            for tab in JobTab
            for sort in JobSort
        )
        durations["counts, everybody"] = took(lambda: bench.store.counts(JobQuery(), NOW))
        rows = bench.store.query(QUERIES["pending, everybody"], NOW).rows
        durations["places of a page"] = took(lambda: bench.store.ahead([row.job for row in rows]))
        return {name: seconds * 1000 for name, seconds in durations.items()}


QUERIES = {
    "pending, everybody": JobQuery(state=JobTab.PENDING),
    "ended, everybody": JobQuery(state=JobTab.ENDED),
    "ended, one user": JobQuery(state=JobTab.ENDED, owner="user7"),
    "all, one user": JobQuery(owner="user7"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in {"jobs": 50_000, "ended": 500_000, "changed": 500, "rounds": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    durations = measure(options.jobs, options.ended, options.changed, options.rounds)
    for name, milliseconds in durations.items():
        print(f"{name:22} {milliseconds:9.1f} ms")
    ratio = (durations["poll"] + durations["store"]) / durations["plain"]
    print(f"a poll, and storing it, takes {ratio:.2f} of a parse of every line")


if __name__ == "__main__":
    main()
