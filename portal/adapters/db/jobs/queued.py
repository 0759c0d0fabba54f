"""Batch jobs that Slurm has not finished, as far as the worker knows."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Engine, select
from sqlmodel import Session as Database

from portal.adapters.db.jobs.rows import JOBS
from portal.core.images.use import QueuedJob
from portal.core.jobs.job import JobTab

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def queued_jobs(engine: Engine) -> list[QueuedJob]:
    """All jobs that wait or run, without those of sessions.

    A requeued job has a new time of submission in Slurm, and the script that it always had.
    """
    live = JOBS.c.tab.in_([JobTab.PENDING.value, JobTab.RUNNING.value])
    wanted = select(JOBS.c.number, JOBS.c.owner, JOBS.c.submitted, JOBS.c.restarts)
    with Database(engine) as db:
        rows = db.execute(wanted.where(live, JOBS.c.session.is_(None))).all()
    return [
        QueuedJob(str(row.number), row.owner, LONG_AGO if row.restarts else row.submitted)
        for row in rows
    ]
