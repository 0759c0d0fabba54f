"""Batch jobs that Slurm has not finished, as far as the worker knows."""

from __future__ import annotations

from sqlalchemy import Engine, select
from sqlmodel import Session as Database

from portal.adapters.db.jobs.rows import JOBS
from portal.core.images.use import QueuedJob
from portal.core.jobs.job import JobTab


def queued_jobs(engine: Engine) -> list[QueuedJob]:
    """All jobs that wait or run, without those of sessions."""
    live = JOBS.c.tab.in_([JobTab.PENDING.value, JobTab.RUNNING.value])
    wanted = select(JOBS.c.number, JOBS.c.owner, JOBS.c.submitted)
    with Database(engine) as db:
        rows = db.execute(wanted.where(live, JOBS.c.session.is_(None))).all()
    return [QueuedJob(str(row.number), row.owner, row.submitted) for row in rows]
