"""Merges what the queue and what accounting say of jobs into their rows, in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from sqlalchemy import RowMapping, bindparam, delete, insert, select, update
from sqlmodel import Session as Database

from portal.core.jobs.job import Job, JobTab
from portal.store.jobs.heads import choose_heads
from portal.store.jobs.rows import JOBS, QUEUE_COLUMNS, TEXTS, Values, queue_values
from portal.store.jobs.texts import by_number

ACCOUNTING_LAG = timedelta(seconds=5)
"""How long accounting may lag behind the queue in recording the end of a job."""
_KNOWN = ("number", "texted", "ask_at", "left", *QUEUE_COLUMNS)


def from_queue(job: Job, now: datetime) -> Values:
    """The columns of what the queue says of a job."""
    asked = now + ACCOUNTING_LAG if job.tab is JobTab.ENDED else None
    left = {"left": None, "gone": None, "ask_at": asked, "cancelled_by": None}
    return queue_values(job, now) | left


def from_accounting(job: Job) -> Values:
    """The columns of what accounting says of a job that is over; the restarts are not asked for."""
    ended = job.report.end or job.report.submitted or datetime.now(UTC)
    told = {"ask_at": None, "gone": None, "cancelled_by": job.report.cancelled_by}
    values = queue_values(job, ended) | told
    del values["restarts"]
    return values


def keeps_queue(before: RowMapping, values: Values) -> bool:
    """Whether a row needs nothing of what the queue says: accounting has told more."""
    over = JobTab.ENDED.value
    settled = before["tab"] == over and before["ask_at"] is None
    again = before["restarts"] != values["restarts"] or before["submitted"] != values["submitted"]
    if settled and values["tab"] == over and not again and before["left"] is None:
        return True
    same = all(before[name] == values[name] for name in QUEUE_COLUMNS)
    return same and before["left"] is None


def keeps_accounting(before: RowMapping, values: Values) -> bool:
    """Whether a row needs nothing of what accounting says: the job is in the queue again, or the
    end of this or a later run is known."""
    if before["tab"] != JobTab.ENDED.value:
        return before["left"] is None or before["submitted"] > values["submitted"]
    settled = before["ask_at"] is None
    return before["submitted"] > values["submitted"] or (
        settled and all(before[name] == values[name] for name in ("state", "ended", "submitted"))
    )


def merge(
    db: Database,
    wanted: Mapping[int, Values],
    keeps: Callable[[RowMapping, Values], bool],
) -> None:
    """Write what differs from the stored rows, and choose the heads of the arrays in it."""
    columns = [JOBS.c[name] for name in _KNOWN]
    # Locked, in the order of their numbers: the queue and accounting are merged by two threads.
    stored = select(*columns).where(JOBS.c.number.in_(list(wanted))).order_by(JOBS.c.number)
    known = {row.number: row._mapping for row in db.execute(stored.with_for_update())}
    for number, before in known.items():
        _keep_known(before, wanted[number])
    new = [{"number": n, **values} for n, values in wanted.items() if n not in known]
    changed = {n: v for n, v in wanted.items() if n in known and not keeps(known[n], v)}
    if new:
        db.execute(insert(JOBS), new)
    if changed:
        first = next(iter(changed.values()))
        assigned: Values = {name: bindparam(f"_{name}") for name in first}
        rows = [{"_number": n, **{f"_{k}": x for k, x in v.items()}} for n, v in changed.items()]
        by_number(db, assigned, rows)
        _begin_anew(db, known, changed)
    arrays = {values["array_id"] for values in (*new, *changed.values())}
    arrays |= {known[n]["array_id"] for n in changed}
    choose_heads(db, arrays - {None})


def _begin_anew(
    db: Database, known: Mapping[int, RowMapping], changed: Mapping[int, Values]
) -> None:
    """Forget what is not true of another run, or of another job under the same number."""
    if again := [n for n, v in changed.items() if _is_other_run(known[n], v)]:
        which = JOBS.c.number.in_(again)
        db.execute(update(JOBS).where(which).values(texted=False, stopped_by=None))
    # What was a task of an array, and is a job of its own now, is listed.
    if own := [n for n, v in changed.items() if v["array_id"] is None and known[n]["array_id"]]:
        which = JOBS.c.number.in_(own)
        db.execute(update(JOBS).where(which).values(tab_head=True, all_head=True))
    if others := [n for n, v in changed.items() if known[n]["owner"] != v["owner"]]:
        which = JOBS.c.number.in_(others)
        db.execute(update(JOBS).where(which).values(name="", name_key="", session=None))
        db.execute(delete(TEXTS).where(TEXTS.c.number.in_(others)))


_MEMBERSHIP = ("array_id", "tasks", "het_id", "het_offset")


def _keep_known(before: RowMapping, values: Values) -> None:
    """Slurm does not show of which array tasks were that were cancelled before they started, nor
    accounting of which heterogeneous job a part was: what was known is kept."""
    if "restarts" not in values:
        same_job = before["owner"] == values["owner"]
        values["restarts"] = before["restarts"] if same_job else 0
    if (
        values["array_id"] is None
        and values["het_id"] is None
        and not _is_other_run(before, values)
    ):
        values |= {name: before[name] for name in _MEMBERSHIP}


def _is_other_run(before: RowMapping, values: Values) -> bool:
    same = before["submitted"] == values["submitted"] and before["owner"] == values["owner"]
    return not same
