"""How many jobs the database has, and its size."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import func, select
from sqlmodel import Session as Database

from portal.store.jobs.rows import OVER_STATES
from portal.store.tables.jobs import IS_HEAD, IS_OVER, IS_TASK, JOBS

JOB_BYTES = 700
"""Bytes of one ended job with its indexes (bench/job_rows.py)."""
_BYTES = {
    "sqlite": "SELECT (page_count - freelist_count) * page_size"
    " FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
    "postgresql": "SELECT pg_database_size(current_database())",
}


@dataclass(frozen=True)
class JobsSize:
    """Rows of jobs, those that ended within a day, and bytes of the database."""

    rows: int
    ended_in_a_day: int
    database_bytes: int


def jobs_size(db: Database, now: datetime) -> JobsSize:
    """Count the jobs; reads an index of all of them."""
    count = select(func.count()).select_from(JOBS)
    lately = JOBS.c.ended >= now - timedelta(days=1)
    heads = count.where(IS_OVER, IS_HEAD, lately)
    tasks = count.where(IS_OVER, IS_TASK, JOBS.c.state.in_(OVER_STATES), lately)
    size = db.connection().exec_driver_sql(_BYTES[db.get_bind().dialect.name]).scalar_one()
    ended = db.execute(heads).scalar_one() + db.execute(tasks).scalar_one()
    return JobsSize(db.execute(count).scalar_one(), ended, int(size))
