"""Batch jobs as rows of the store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job
from portal.store.engine import open_database, upgrade
from portal.store.jobs.store import JobStore

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


def migrated_store(folder: Path) -> JobStore:
    """A store in a new database that all migrations were applied to."""
    return JobStore(migrated_database(folder))


def migrated_database(folder: Path) -> Engine:
    """Such a database of SQLite; tests/unit/postgresql has another function in its place."""
    url = f"sqlite:///{folder / 'jobs.db'}"
    upgrade(url)
    return open_database(url)


def queued_job(
    number: int, state: JobState = JobState.PENDING, *, array: int = 0, tasks: str = "", **more: Any
) -> Job:
    """A job as the queue shows it."""
    values = {"user": "alice", "submitted": NOW, "partition": "main", "priority": 5, **more}
    if state.over:
        values.setdefault("end", NOW)
    report = JobReport(job_id=str(number), state=state, **values)
    return Job(report, array_id=str(array or ""), tasks=tasks)


def ended_job(number: int, state: JobState, **more: Any) -> Job:
    """A job as accounting has it."""
    return queued_job(number, state, start=NOW, **more)


def at(seconds: float) -> datetime:
    """A moment after NOW."""
    return NOW + timedelta(seconds=seconds)


def job_by_id(store: JobStore, shown_id: str) -> Job:
    """A job that has to exist."""
    found = store.get(shown_id)
    assert found is not None
    return found
