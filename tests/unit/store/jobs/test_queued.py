"""Batch jobs that Slurm has not finished."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.core.cluster.queue import QueuePart
from portal.core.images.use import QueuedJob
from portal.store.engine import open_database, upgrade
from portal.store.jobs.queued import LONG_AGO, queued_jobs
from portal.store.jobs.store import JobStore
from tests.support.stored_jobs import job

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def test_jobs_that_wait_or_run_are_found_and_requeued_ones_count_as_old(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    upgrade(url)
    engine = open_database(url)
    waits, runs = job(7, NOW, submitted=NOW), job(8, NOW, "bob", state="RUNNING", submitted=NOW)
    requeued = job(9, NOW, submitted=NOW, restarts=1)
    over = job(10, NOW, state="COMPLETED")
    tables = JobStore(engine)
    tables.save([waits, runs, requeued], NOW)
    tables.settle([over])
    assert sorted(queued_jobs(engine), key=lambda one: one.id) == [
        QueuedJob("7", "alice", NOW),
        QueuedJob("8", "bob", NOW),
        QueuedJob("9", "alice", LONG_AGO),
    ]


@pytest.fixture
def tables(tmp_path: Path) -> JobStore:
    """Jobs of alice and bob in two accounts, with two QOS."""
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    upgrade(url)
    made = JobStore(open_database(url))
    made.save(
        [
            job(1, NOW, account="physics", qos="normal"),
            job(2, NOW, account="physics", qos="long", state="RUNNING"),
            job(3, NOW, account="bio", qos="normal", state="SUSPENDED", partition="gpu"),
            job(4, NOW, account="physics", qos="normal", array_id="4", tasks="0-19%4"),
            job(5, NOW, account="physics", qos="normal", array_id="5", tasks="7", state="RUNNING"),
            job(6, NOW, account="physics", qos="normal", state="COMPLETING"),
            job(7, NOW, "bob", account="physics", qos="normal"),
        ],
        NOW,
    )
    made.settle([job(8, NOW, account="physics", qos="normal", state="COMPLETED")])
    return made


@pytest.mark.parametrize(
    ("part", "count"),
    [
        (QueuePart(), 25),
        (QueuePart("alice"), 24),
        (QueuePart("carol"), 0),
        (QueuePart("alice", accounts=frozenset({"physics"})), 23),
        (QueuePart("alice", accounts=frozenset({"physics", "bio"})), 24),
        (QueuePart(accounts=frozenset({"physics"})), 24),
        (QueuePart("alice", qos="normal"), 23),
        (QueuePart("alice", qos="long"), 1),
        (QueuePart("alice", qos="long", of_qos=frozenset({"gpu"})), 2),
        (QueuePart("alice", qos="normal", of_qos=frozenset({"gpu"})), 23),
        (QueuePart("alice", partitions=frozenset({"gpu"})), 1),
        (QueuePart("alice", accounts=frozenset()), 0),
    ],
)
def test_what_a_limit_on_submitted_jobs_counts(
    tables: JobStore, part: QueuePart, count: int
) -> None:
    assert tables.queued(part) == count
