"""Queued and running jobs, as last polled by the worker."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, and_, func, not_, or_, select
from sqlmodel import Session as Database

from portal.core.cluster.job_reports import JobState
from portal.core.cluster.queue import QueuePart
from portal.core.images.use import QueuedJob
from portal.core.jobs.tasks import count_tasks
from portal.store.tables.jobs import IS_LIVE, IS_PENDING, JOBS

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def queued_jobs(engine: Engine) -> list[QueuedJob]:
    """All pending and running jobs, except for those of sessions.

    Slurm gives a requeued job a new time of submission, but keeps its script; it gets LONG_AGO.
    """
    columns = select(JOBS.c.number, JOBS.c.owner, JOBS.c.submitted, JOBS.c.restarts)
    with Database(engine) as db:
        rows = db.execute(columns.where(IS_LIVE, JOBS.c.session.is_(None))).all()
    return [
        QueuedJob(str(row.number), row.owner, LONG_AGO if row.restarts else row.submitted)
        for row in rows
    ]


def count_queued(db: Database, part: QueuePart) -> int:
    """The number of pending and running jobs in this part of the queue; each array task is one.

    As in Slurm, jobs that are completing do not count.
    """
    live = [IS_LIVE, JOBS.c.state != JobState.COMPLETING.value, *_within(part)]
    # Tasks that have not started are one record.
    array = and_(IS_PENDING, JOBS.c.array_id.is_not(None))
    alone = db.execute(
        select(func.count()).select_from(JOBS).where(*live, not_(array))
    ).scalar_one()
    tasks = db.execute(select(JOBS.c.tasks).where(*live, array)).scalars()
    return int(alone) + sum(map(count_tasks, tasks))


def _within(part: QueuePart) -> list[Any]:
    conditions: list[Any] = []
    if part.user is not None:
        conditions.append(JOBS.c.owner == part.user)
    if part.qos is not None:
        conditions.append(or_(JOBS.c.qos == part.qos, JOBS.c.partition.in_(sorted(part.of_qos))))
    if part.accounts is not None:
        conditions.append(JOBS.c.account.in_(sorted(part.accounts)))
    if part.partitions is not None:
        conditions.append(JOBS.c.partition.in_(sorted(part.partitions)))
    return conditions
