"""What ended jobs cost in the database: bytes for each, and lists of 1,000,000 against 10,000.

    python -m bench.job_rows [--jobs 1000000] [--owners 1000] [--rounds 5]

needs no cluster: it fills SQLite databases of its own with jobs of one day, most of them tasks of
arrays, and a queue of 5,000.

Printed: bytes of the table and of each index for each job, before and after completed tasks are
counted only; processor milliseconds of each list with many jobs and with few, and their ratio; and
processor seconds of counting tasks and of deleting jobs, for 1,000,000 of them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from sqlalchemy import Engine

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.query import JobQuery, JobSort
from portal.store.engine import open_database, upgrade
from portal.store.jobs.store import JobStore

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
QUEUED = 5000
SMALL = 100
"""The smaller database has so many times fewer jobs."""
MILLION = 1_000_000

_ROWS = """
    WITH RECURSIVE numbers(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < {jobs} - 1)
    INSERT INTO job (number, owner, state, tab, status_key, nodes, submitted, started, ended,
        time_limit, restarts, exit_code, partition, priority, place, account, qos, cpus, memory_mb,
        shards, gpus, array_id, tasks, het_offset, tab_head, all_head, name, name_key, texted)
    SELECT n + 1, 'user' || (n / 1000 % {owners}), state, 'ended', state, 'node' || (n % 900),
        {submitted}, {started}, {ended}, 60 + n % 1440, 0, 0, 'main', n % 9973, -(n % 9973),
        'account' || (n / 1000 % 50), 'normal', 1 + n % 64, 1024 * (1 + n % 256), 0, 0,
        CASE WHEN n % 1000 < 700 THEN n - n % 1000 + 1 END,
        CASE WHEN n % 1000 < 700 THEN '' || n % 1000 ELSE '' END,
        0, n % 1000 >= 699, n % 1000 >= 699, 'job ' || (n / 1000), 'job ' || (n / 1000), 1
    FROM (SELECT n, CASE WHEN n % 20 = 0 THEN 'FAILED' ELSE 'COMPLETED' END AS state FROM numbers)
        AS jobs
"""
"""In each thousand, an array of 700 tasks and 300 single jobs, all of one owner."""
_TEXTS = """
    INSERT INTO job_text (number, directory, command, stdout, stderr, dependency)
    SELECT number, '/home/' || owner || '/project/run', '/home/' || owner || '/project/run/job.sh',
        '/home/' || owner || '/project/run/slurm-%A_%a.out',
        '/home/' || owner || '/project/run/slurm-%A_%a.out', '' FROM job
"""


def fill(engine: Engine, jobs: int, owners: int) -> None:
    """Store ended jobs of one day, by the database itself, and a queue."""
    times = {"submitted": 7200, "started": 3600, "ended": 0}
    moments = {
        name: f"strftime('%Y-%m-%d %H:%M:%f000', '{NOW:%F %T}', "
        f"'-' || (({jobs} - n) * 86400 / {jobs} + {before}) || ' seconds')"
        for name, before in times.items()
    }
    with engine.begin() as db:
        db.exec_driver_sql(_ROWS.format(jobs=jobs, owners=owners, **moments))
        db.exec_driver_sql(_TEXTS)
    queue = (queued(jobs + number, owners) for number in range(1, QUEUED + 1))
    JobStore(engine).save(queue, NOW)


def queued(number: int, owners: int) -> Job:
    """A job in the queue."""
    return Job(
        JobReport(
            str(number), f"user{number % owners}", JobState.PENDING, "Priority", submitted=NOW,
            partition="main", priority=number, cpus=4, memory_mb=1024, time_limit=60,
        )
    )  # fmt: skip


def sizes(engine: Engine) -> dict[str, int]:
    """Bytes of the tables of jobs, and of their indexes."""
    query = (
        "SELECT s.name, sum(pgsize) FROM dbstat s JOIN sqlite_schema m ON m.name = s.name"
        " WHERE tbl_name IN ('job', 'job_text', 'job_counted') GROUP BY s.name"
    )
    with engine.connect() as db:
        return {name: int(size) for name, size in db.exec_driver_sql(query)}


QUERIES = {
    "ended, one user": JobQuery(state=JobTab.ENDED, owner="user7"),
    "ended, one user, by memory": JobQuery(
        state=JobTab.ENDED, owner="user7", sort=JobSort.MOST_MEMORY
    ),
    "all, one user": JobQuery(owner="user7"),
    "pending, one user": JobQuery(state=JobTab.PENDING, owner="user7"),
    "tasks of an array": JobQuery(array="7001", owner="user7", sort=JobSort.OLDEST),
    "ended, everybody": JobQuery(state=JobTab.ENDED),
    "ended, everybody, ended last": JobQuery(state=JobTab.ENDED, sort=JobSort.ENDED_LAST),
    "ended, everybody, by memory": JobQuery(state=JobTab.ENDED, sort=JobSort.MOST_MEMORY),
    "ended, everybody, failed": JobQuery(state=JobTab.ENDED, slurm_state=JobState.FAILED),
    "ended, everybody, a word": JobQuery(state=JobTab.ENDED, q="nothing"),
    "all, everybody": JobQuery(),
    "all, everybody, by memory": JobQuery(sort=JobSort.MOST_MEMORY),
    "pending, everybody, by name": JobQuery(state=JobTab.PENDING, sort=JobSort.NAME),
}


def took(action: Callable[[], object], rounds: int) -> float:
    """The least seconds of this process's processor time."""
    best = float("inf")
    for _ in range(rounds):
        start = time.process_time()
        action()
        best = min(best, time.process_time() - start)
    return best


def lists(store: JobStore, rounds: int) -> dict[str, float]:
    """Milliseconds of each list, and of the counts above it."""
    actions: dict[str, Callable[[], object]] = {}
    for name, query in QUERIES.items():
        actions[name] = partial(store.query, query, NOW)
    for name in ("ended, one user", "ended, everybody", "ended, everybody, a word"):
        actions[f"counts: {name}"] = partial(store.counts, QUERIES[name], NOW)
    actions["owners"] = partial(store.owners, 200)
    actions["live jobs"] = store.live_ids
    actions["jobs without texts"] = partial(store.without_texts, 2000)
    return {name: took(action, rounds) * 1000 for name, action in actions.items()}


class Case:
    """A database with so many jobs."""

    def __init__(self, folder: Path, jobs: int, owners: int) -> None:
        url = f"sqlite:///{folder}/{jobs}.db"
        upgrade(url)
        self.engine = open_database(url)
        self.jobs = jobs
        fill(self.engine, jobs, owners)
        self.store = JobStore(self.engine)

    def for_each_job(self) -> dict[str, float]:
        """Bytes of each table and index for each job."""
        return {name: size / self.jobs for name, size in sizes(self.engine).items()}

    def until_done(self, action: Callable[[datetime], int]) -> float:
        """Processor seconds for 1,000,000 jobs of an action that is repeated until it returns 0."""
        start, done = time.process_time(), 0
        while number := action(NOW + timedelta(days=1)):
            done += number
        return (time.process_time() - start) * MILLION / max(done, 1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, usual in {"jobs": MILLION, "owners": 1000, "rounds": 5}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        few = Case(Path(folder), options.jobs // SMALL, options.owners)
        many = Case(Path(folder), options.jobs, options.owners)
        all_rows = many.for_each_job()
        small, large = lists(few.store, options.rounds), lists(many.store, options.rounds)
        counting = many.until_done(many.store.count_tasks)
        counted = many.for_each_job()
        deleting = many.until_done(many.store.delete_ended)
    print(f"{'bytes for each job':32} {'all rows':>9} {'tasks counted':>14}")
    for name in sorted(all_rows, key=lambda name: -all_rows[name]):
        print(f"{name:32} {all_rows[name]:9.1f} {counted[name]:14.1f}")
    print(f"{'together':32} {sum(all_rows.values()):9.1f} {sum(counted.values()):14.1f}")
    print(f"\n{'processor ms of a list':32} {few.jobs:>9} {many.jobs:>9}   ratio")
    for name, milliseconds in small.items():
        print(f"{name:32} {milliseconds:9.2f} {large[name]:9.2f} {large[name] / milliseconds:7.1f}")
    print(
        f"\nprocessor seconds for {MILLION}: counting tasks {counting:.1f},"
        f" deleting jobs {deleting:.1f}"
    )


if __name__ == "__main__":
    main()
