"""Batch jobs that Slurm has not finished."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from portal.adapters.db.engine import open_database, upgrade
from portal.adapters.db.jobs.queued import LONG_AGO, queued_jobs
from portal.adapters.db.jobs.store import JobTables
from portal.core.images.use import QueuedJob
from tests.listed_jobs import job

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def test_jobs_that_wait_or_run_are_found_and_requeued_ones_count_as_old(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    upgrade(url)
    engine = open_database(url)
    waits, runs = job(7, NOW, submitted=NOW), job(8, NOW, "bob", state="RUNNING", submitted=NOW)
    requeued = job(9, NOW, submitted=NOW, restarts=1)
    over = job(10, NOW, state="COMPLETED")
    tables = JobTables(engine)
    tables.save([waits, runs, requeued], NOW)
    tables.settle([over])
    assert sorted(queued_jobs(engine), key=lambda one: one.id) == [
        QueuedJob("7", "alice", NOW),
        QueuedJob("8", "bob", NOW),
        QueuedJob("9", "alice", LONG_AGO),
    ]
