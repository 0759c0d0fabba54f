"""Finds jobs of sessions that are missing from the portal, or were."""

from __future__ import annotations

from collections import Counter

from sqlalchemy import String, cast, exists, select
from sqlmodel import Session as Database
from sqlmodel import col

from portal.core.jobs.job import Job, JobTab
from portal.core.session_job.adoption import is_session_id
from portal.store.jobs.query import jobs_where
from portal.store.jobs.rows import Values
from portal.store.tables import SessionRow
from portal.store.tables.jobs import JOBS, LIKE_A_SESSION

MOST = 1000
"""Maximum of jobs of all owners at a time."""


def session_like(db: Database, each: int, tab: JobTab) -> list[Job]:
    """A tab's live jobs named like sessions, without a session; the first `each` of an owner."""
    has_session = exists().where(col(SessionRow.id) == JOBS.c.name)
    columns = JOBS.c.number, JOBS.c.owner, JOBS.c.name
    query = select(*columns).where(LIKE_A_SESSION, JOBS.c.tab == tab.value, ~has_session)
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
    query = select(JOBS.c.number, JOBS.c.name).where(LIKE_A_SESSION, exists().where(*same_session))
    return [{"_number": number, "_session": name} for number, name in db.execute(query)]
