"""Writes jobs' rows: merges the queue's and accounting's reports in any order, the heads of arrays,
and the texts of owners."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update
from sqlmodel import Session as Database
from sqlmodel import col

from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.tasks import has_task
from portal.store.jobs.rows import (
    QUEUE_COLUMNS,
    TEXTS,
    Values,
    pieces,
    queue_values,
    shown_name,
    text_values,
)
from portal.store.tables import SessionRow
from portal.store.tables.jobs import IS_HEAD, IS_PENDING, JOBS

ACCOUNTING_LAG = timedelta(seconds=5)
"""How long accounting may lag behind the queue in recording the end of a job."""
_PIECE = 500
_KNOWN = (
    "number", "texted", "ask_at", "left", "gone", "cancelled_by", "status_key", "place",
    *QUEUE_COLUMNS,
)  # fmt: skip


def from_queue(job: Job, now: datetime) -> Values:
    """The columns of a job that the queue reported."""
    ask_at = now + ACCOUNTING_LAG if job.tab is JobTab.ENDED else None
    left = {"left": None, "gone": None, "ask_at": ask_at, "cancelled_by": None}
    return queue_values(job, now) | left


def from_accounting(job: Job) -> Values:
    """The columns of an ended job that accounting reported; without restarts, which it lacks."""
    ended = job.report.end or job.report.submitted or datetime.now(UTC)
    settled = {"ask_at": None, "gone": None, "cancelled_by": job.report.cancelled_by}
    values = queue_values(job, ended) | settled
    del values["restarts"]
    return values


def keeps_queue(before: Values, values: Values) -> bool:
    """Whether a row stays as it is: the queue reports nothing new, or accounting reported more."""
    over = JobTab.ENDED.value
    settled = before["tab"] == over and before["ask_at"] is None
    again = before["restarts"] != values["restarts"] or before["submitted"] != values["submitted"]
    if settled and values["tab"] == over and not again and before["left"] is None:
        return True
    same = all(before[name] == values[name] for name in QUEUE_COLUMNS)
    return same and before["left"] is None


def keeps_accounting(before: Values, values: Values) -> bool:
    """Whether a row stays as it is: the job is in the queue again, or the end of this or of a later
    run is known."""
    if before["tab"] != JobTab.ENDED.value:
        return before["left"] is None or before["submitted"] > values["submitted"]
    settled = before["ask_at"] is None
    return before["submitted"] > values["submitted"] or (
        settled and all(before[name] == values[name] for name in ("state", "ended", "submitted"))
    )


def merge(
    db: Database,
    reported: Mapping[int, Values],
    keeps: Callable[[Values, Values], bool],
) -> None:
    """Write the values that differ from the stored rows, and choose the heads of their arrays."""
    columns = [JOBS.c[name] for name in _KNOWN]
    # Locked in the order of their numbers: two threads merge the queue and accounting.
    stored = select(*columns).where(JOBS.c.number.in_(list(reported))).order_by(JOBS.c.number)
    rows = db.execute(stored.with_for_update())
    stored_rows: dict[int, Values] = {row[0]: dict(zip(_KNOWN, row, strict=True)) for row in rows}
    for number, before in stored_rows.items():
        _keep_membership(before, reported[number])
    new = [{"number": n, **values} for n, values in reported.items() if n not in stored_rows]
    changed = {
        n: v for n, v in reported.items() if n in stored_rows and not keeps(stored_rows[n], v)
    }
    if new:
        db.execute(insert(JOBS), new)
    if changed:
        _update(db, stored_rows, changed)
        _reset_other_runs(db, stored_rows, changed)
    arrays = {values["array_id"] for values in (*new, *changed.values())}
    arrays |= {stored_rows[n]["array_id"] for n in changed}
    choose_heads(db, arrays - {None})


def _update(db: Database, stored_rows: Mapping[int, Values], changed: Mapping[int, Values]) -> None:
    """Write the columns that differ: databases write the indexes of all columns that are set."""
    rows = defaultdict[tuple[str, ...], list[Values]](list)
    for number, values in changed.items():
        before = stored_rows[number]
        names = tuple(name for name, value in values.items() if before[name] != value)
        rows[names].append({"_number": number, **{f"_{name}": values[name] for name in names}})
    for names, updates in rows.items():
        if names:
            by_number(db, {name: bindparam(f"_{name}") for name in names}, updates)


def _reset_other_runs(
    db: Database, stored_rows: Mapping[int, Values], changed: Mapping[int, Values]
) -> None:
    """Clear columns that do not hold for another run, or for another job with the same number."""
    if rerun := [n for n, v in changed.items() if _is_other_run(stored_rows[n], v)]:
        condition = JOBS.c.number.in_(rerun)
        db.execute(update(JOBS).where(condition).values(texted=False, stopped_by=None))
    # Lists show a former task of an array that is a single job now.
    if left_array := [
        n for n, v in changed.items() if v["array_id"] is None and stored_rows[n]["array_id"]
    ]:
        condition = JOBS.c.number.in_(left_array)
        db.execute(update(JOBS).where(condition).values(tab_head=True, all_head=True))
    if other_owner := [n for n, v in changed.items() if stored_rows[n]["owner"] != v["owner"]]:
        condition = JOBS.c.number.in_(other_owner)
        db.execute(update(JOBS).where(condition).values(name="", name_key="", session=None))
        db.execute(delete(TEXTS).where(TEXTS.c.number.in_(other_owner)))


_MEMBERSHIP = ("array_id", "tasks", "het_id", "het_offset")


def _keep_membership(before: Values, values: Values) -> None:
    """Keep the stored array or heterogeneous job: Slurm does not report the array of tasks that
    were cancelled before they started, nor accounting the heterogeneous job of a component."""
    if "restarts" not in values:
        same_job = before["owner"] == values["owner"]
        values["restarts"] = before["restarts"] if same_job else 0
    if (
        values["array_id"] is None
        and values["het_id"] is None
        and not _is_other_run(before, values)
    ):
        values |= {name: before[name] for name in _MEMBERSHIP}


def _is_other_run(before: Values, values: Values) -> bool:
    same = before["submitted"] == values["submitted"] and before["owner"] == values["owner"]
    return not same


# Heads of arrays: a list shows one row for each array, and must find it by an index. Two columns
# say of each row whether the list of its tab, and the list of all tabs, shows it.


def choose_heads(db: Database, arrays: Collection[int]) -> None:
    """Choose the heads of these arrays; only rows that change are written."""
    for piece in pieces(sorted(arrays), _PIECE):
        chosen, stored = _choose(db, list(piece)), _stored_heads(db, list(piece))
        changes = [
            {"_number": n, "_tab": n in chosen[0], "_all": n in chosen[1]}
            for n in chosen[0] | chosen[1] | stored[0] | stored[1]
            if (n in chosen[0], n in chosen[1]) != (n in stored[0], n in stored[1])
        ]
        if changes:
            values: dict[str, Any] = {"tab_head": bindparam("_tab"), "all_head": bindparam("_all")}
            statement = update(JOBS).where(JOBS.c.number == bindparam("_number")).values(**values)
            db.connection().execute(statement, changes)


def _choose(db: Database, arrays: list[int]) -> tuple[set[int], set[int]]:
    """The numbers of the heads of tabs, and of the list of all: the record of pending tasks, else
    the task submitted last.

    Tasks that have not started are one record, with the number of the array.
    """
    columns = JOBS.c.array_id, JOBS.c.tab
    query = select(*columns, func.max(JOBS.c.number), func.min(JOBS.c.number))
    rows = db.execute(query.where(JOBS.c.array_id.in_(arrays)).group_by(*columns))
    of_tabs, last_of_array = set(), defaultdict[int, int](int)
    waiting = set()
    for array, tab, last, first in rows:
        waits = tab == JobTab.PENDING.value and first == array
        of_tabs.add(first if waits else last)
        last_of_array[array] = max(last_of_array[array], last)
        if waits:
            waiting.add(array)
    return of_tabs, {array if array in waiting else last for array, last in last_of_array.items()}


def _stored_heads(db: Database, arrays: list[int]) -> tuple[set[int], set[int]]:
    columns = JOBS.c.number, JOBS.c.tab_head, JOBS.c.all_head
    # The head of all tabs is that of its tab as well.
    rows = db.execute(select(*columns).where(JOBS.c.array_id.in_(arrays), IS_HEAD)).all()
    return {n for n, tab, _ in rows if tab}, {n for n, _, for_all in rows if for_all}


def delete_requeued(db: Database, numbers: Sequence[int]) -> None:
    """Delete tasks that left the queue because they were requeued.

    A requeued task is part of its array's record of tasks that have not started again, and no
    longer has its own record.
    """
    columns = JOBS.c.number, JOBS.c.array_id, JOBS.c.tasks
    alone = JOBS.c.number.in_(numbers), JOBS.c.array_id != JOBS.c.number
    tasks = db.execute(select(*columns).where(*alone)).all()
    arrays = {array for _, array, _ in tasks}
    waiting = {
        number: tasks_text
        for number, _, tasks_text in db.execute(
            select(*columns).where(JOBS.c.number.in_(arrays), IS_PENDING)
        )
    }
    requeued = [
        number
        for number, array, task in tasks
        if array in waiting and task.isdecimal() and has_task(waiting[array], int(task))
        if "..." not in waiting[array]  # Slurm has shortened the list of tasks
    ]
    if requeued:
        db.execute(delete(TEXTS).where(TEXTS.c.number.in_(requeued)))
        db.execute(delete(JOBS).where(JOBS.c.number.in_(requeued)))
        choose_heads(db, arrays)


# Texts


def by_number(db: Database, assigned: Mapping[str, Any], rows: list[Values]) -> None:
    """Update rows by their numbers ("_number"), each with its own values."""
    statement = update(JOBS).where(JOBS.c.number == bindparam("_number")).values(**assigned)
    db.connection().execute(statement, rows)


def save_texts(db: Database, texts: Mapping[int, JobTexts]) -> None:
    """Store the texts of these jobs, except for unknown ones."""
    if not texts:
        return
    numbers = list(texts)
    owners = dict(
        db.execute(select(JOBS.c.number, JOBS.c.owner).where(JOBS.c.number.in_(numbers))).all()
    )
    known_texts = {number: text for number, text in texts.items() if number in owners}
    if not known_texts:
        return
    sessions = _sessions_named(db, {text.name for text in known_texts.values()})
    rows = []
    for number, text in known_texts.items():
        name = shown_name(text.name)
        owner, job_id = sessions.get(text.name, ("", None))
        is_its = owner == owners[number] and job_id in (None, str(number))
        rows.append(
            {
                "_number": number,
                "_name": name,
                "_key": name.lower()[:200],
                "_session": text.name if is_its else None,
                "_texted": True,
            }
        )
    assigned = {"name": "_name", "name_key": "_key", "session": "_session", "texted": "_texted"}
    by_number(db, {column: bindparam(key) for column, key in assigned.items()}, rows)
    db.execute(delete(TEXTS).where(TEXTS.c.number.in_(list(known_texts))))
    values = [{"number": n, **text_values(text)} for n, text in known_texts.items()]
    db.execute(insert(TEXTS), values)


def _sessions_named(db: Database, names: Collection[str]) -> dict[str, tuple[str, str | None]]:
    """The sessions with these ids: owner and job. A session's job has its id as name."""
    ids = [name for name in names if len(name) == 32 and name.isalnum() and name.isascii()]
    columns = col(SessionRow.id), col(SessionRow.owner), col(SessionRow.job_id)
    query = select(*columns).where(col(SessionRow.id).in_(ids))
    return {session: (owner, job_id) for session, owner, job_id in db.execute(query)}
