"""Writes what differs of jobs: the queue and accounting tell of the same ones, in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlalchemy import RowMapping, bindparam, delete, insert, select, update
from sqlmodel import Session as Database

from portal.adapters.db.jobs.heads import choose_heads
from portal.adapters.db.jobs.rows import JOBS, QUEUE_COLUMNS, TEXTS, Values
from portal.adapters.db.jobs.texts import by_number
from portal.core.jobs.job import JobTab

_KNOWN = ("number", "texted", "ask_at", "left", *QUEUE_COLUMNS)


def keeps_queue(before: RowMapping, values: Values) -> bool:
    """Whether a row needs nothing of what the queue says: accounting has told more."""
    over = JobTab.ENDED.value
    settled = before["tab"] == over and before["ask_at"] is None
    again = before["restarts"] != values["restarts"] or before["submitted"] != values["submitted"]
    if settled and values["tab"] == over and not again and before["left"] is None:
        return True
    same = all(before[name] == values[name] for name in QUEUE_COLUMNS)
    if same and before["tab"] == over:  # its end was saved before, and is being asked about
        return before["left"] is None
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


def save_rows(
    db: Database,
    wanted: Mapping[int, Values],
    keeps: Callable[[RowMapping, Values], bool],
) -> None:
    """Write what differs from the stored rows, and choose the heads of the arrays in it."""
    columns = [JOBS.c[name] for name in _KNOWN]
    known = {
        row.number: row._mapping
        for row in db.execute(select(*columns).where(JOBS.c.number.in_(list(wanted))))
    }
    for number, before in known.items():
        _keep_membership(before, wanted[number])
    new = [{"number": n, **values} for n, values in wanted.items() if n not in known]
    changed = {n: v for n, v in wanted.items() if n in known and not keeps(known[n], v)}
    if new:
        db.execute(insert(JOBS), new)
    others = {n for n, values in changed.items() if known[n]["owner"] != values["owner"]}
    again = {n for n, v in changed.items() if _is_other_run(known[n], v)}
    if changed:
        first = next(iter(changed.values()))
        assigned: Values = {name: bindparam(f"_{name}") for name in first}
        rows = [{"_number": n, **{f"_{k}": x for k, x in v.items()}} for n, v in changed.items()]
        by_number(db, assigned, rows)
    if again:  # requeued, or a number that Slurm used again
        which = JOBS.c.number.in_(again)
        db.execute(update(JOBS).where(which).values(texted=False, stopped_by=None))
    if others:
        which = JOBS.c.number.in_(others)
        db.execute(update(JOBS).where(which).values(name="", name_key="", session=None))
        db.execute(delete(TEXTS).where(TEXTS.c.number.in_(others)))
    arrays = {values["array_id"] for values in (*new, *changed.values())}
    arrays |= {known[n]["array_id"] for n in changed}
    choose_heads(db, arrays - {None})


_MEMBERSHIP = ("array_id", "tasks", "het_id", "het_offset")


def _keep_membership(before: RowMapping, values: Values) -> None:
    """Slurm does not show of which array tasks were that were cancelled before they started, nor
    accounting of which heterogeneous job a part was: what was known is kept."""
    if (
        values["array_id"] is None
        and values["het_id"] is None
        and not _is_other_run(before, values)
    ):
        values |= {name: before[name] for name in _MEMBERSHIP}


def _is_other_run(before: RowMapping, values: Values) -> bool:
    same = before["submitted"] == values["submitted"] and before["owner"] == values["owner"]
    return not same
