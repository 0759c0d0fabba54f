"""Finds jobs of sessions that are missing from the portal, or were."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import String, cast, exists, func, select
from sqlmodel import Session as Database
from sqlmodel import col

from portal.core.jobs.job import Job, JobTab
from portal.core.session_job.adoption import is_session_id
from portal.store.jobs.query import jobs_where
from portal.store.jobs.rows import JOBS, Values
from portal.store.tables import SessionRow

MOST = 1000
"""Maximum of jobs of all owners at a time."""


def session_like(db: Database, each: int) -> list[Job]:
    """Pending jobs named like sessions, but without a session; the first `each` of an owner."""
    has_session = exists().where(col(SessionRow.id) == JOBS.c.name)
    columns = JOBS.c.number, JOBS.c.owner, JOBS.c.name
    query = select(*columns).where(*_named_like_sessions(JobTab.PENDING), ~has_session)
    count: Counter[str] = Counter()
    chosen: list[int] = []
    for number, owner, name in db.execute(query.order_by(JOBS.c.number)):
        if is_session_id(name) and count[owner] < each and len(chosen) < MOST:
            count[owner] += 1
            chosen.append(number)
    if not chosen:
        return []
    return jobs_where(db, JOBS.c.number.in_(chosen), order=JOBS.c.number, texts=False)


def unlinked(db: Database) -> list[Values]:
    """Live jobs whose session has been stored since, as parameters of an update."""
    same_session = (
        col(SessionRow.id) == JOBS.c.name,
        col(SessionRow.owner) == JOBS.c.owner,
        # Slurm's numbers are texts there.
        col(SessionRow.job_id) == cast(JOBS.c.number, String),
    )
    query = select(JOBS.c.number, JOBS.c.name).where(
        *_named_like_sessions(JobTab.PENDING, JobTab.RUNNING), exists().where(*same_session)
    )
    return [{"_number": number, "_session": name} for number, name in db.execute(query)]


def _named_like_sessions(*tabs: JobTab) -> tuple[Any, ...]:
    return (
        JOBS.c.tab.in_([tab.value for tab in tabs]),
        JOBS.c.tab_head.in_([True, False]),  # so that the index can be used
        JOBS.c.left.is_(None),
        JOBS.c.session.is_(None),
        JOBS.c.array_id.is_(None),
        JOBS.c.het_id.is_(None),
        func.length(JOBS.c.name) == 32,
    )
