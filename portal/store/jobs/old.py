"""Old jobs: deleted, and tasks of arrays replaced by their number."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

from sqlalchemy import delete, exists, insert, select
from sqlmodel import Session as Database

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.tasks import count_tasks
from portal.store.jobs.merge import choose_heads
from portal.store.jobs.rows import COUNTED, OVER_STATES, TEXTS
from portal.store.tables.jobs import IS_HEAD, IS_OVER, IS_TASK, JOBS

COUNTED_STATES = (JobState.COMPLETED.value, JobState.CANCELLED.value)
"""States of tasks of which only the number is of interest later."""


def delete_jobs(db: Database, before: datetime, most: int) -> int:
    """Delete at most so many jobs that ended, or were gone, before a time; returns how many."""
    ended = JOBS.c.ended < before
    old = (
        (IS_OVER, IS_HEAD, ended),
        (IS_OVER, IS_TASK, JOBS.c.state.in_(OVER_STATES), ended),
        (JOBS.c.gone < before,),
    )
    rows: dict[int, int | None] = {}
    for conditions in old:
        query = select(JOBS.c.number, JOBS.c.array_id).where(*conditions)
        rows |= dict(db.execute(query.limit(most - len(rows))).all())
    _delete(db, list(rows))
    if arrays := {array for array in rows.values() if array is not None}:
        choose_heads(db, arrays)
        has_rows = exists().where(JOBS.c.array_id == COUNTED.c.array_id)
        db.execute(delete(COUNTED).where(COUNTED.c.array_id.in_(arrays), ~has_rows))
    return len(rows)


def count_tasks_of_arrays(db: Database, before: datetime, most: int) -> int:
    """Replace at most so many rows of tasks by their number; returns how many.

    Rows that a list shows for their array stay, and those whose end accounting has not reported.
    """
    columns = JOBS.c.number, JOBS.c.array_id, JOBS.c.state, JOBS.c.tasks
    query = select(*columns).where(
        IS_OVER,
        IS_TASK,
        JOBS.c.state.in_(COUNTED_STATES),
        JOBS.c.ended < before,
        JOBS.c.ask_at.is_(None),
        JOBS.c.array_id.is_not(None),
    )
    rows = db.execute(query.limit(most)).all()
    numbers: Counter[tuple[int, str]] = Counter()
    for row in rows:  # tasks that were cancelled before they started are one record
        numbers[row.array_id, row.state] += count_tasks(row.tasks)
    if numbers:
        _add(db, numbers)
        _delete(db, [row.number for row in rows])
    return len(rows)


def _add(db: Database, numbers: Counter[tuple[int, str]]) -> None:
    arrays = {array for array, _ in numbers}
    stored = db.execute(select(COUNTED).where(COUNTED.c.array_id.in_(arrays))).all()
    numbers.update({(array, state): number for array, state, number in stored})
    db.execute(delete(COUNTED).where(COUNTED.c.array_id.in_(arrays)))
    rows = [
        {"array_id": array, "state": state, "number": number}
        for (array, state), number in numbers.items()
    ]
    db.execute(insert(COUNTED), rows)


def _delete(db: Database, numbers: list[int]) -> None:
    db.execute(delete(TEXTS).where(TEXTS.c.number.in_(numbers)))
    db.execute(delete(JOBS).where(JOBS.c.number.in_(numbers)))
