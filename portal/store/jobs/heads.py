"""Which row of an array stands for it in lists.

A list shows one row for each array, and finds it by an index as fast as any other job: two columns
say of each row whether the list of its tab, and the list of all tabs, shows it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import bindparam, delete, func, select, update
from sqlmodel import Session as Database

from portal.core.jobs.job import JobTab
from portal.core.jobs.tasks import has_task
from portal.store.jobs.rows import JOBS, TEXTS, pieces

_PIECE = 500


def choose_heads(db: Database, arrays: Collection[int]) -> None:
    """Choose the rows that stand for these arrays; only rows that change are written."""
    for piece in pieces(sorted(arrays), _PIECE):
        wanted, present = _wanted(db, list(piece)), _present(db, list(piece))
        changes = [
            {"_number": n, "_tab": n in wanted[0], "_all": n in wanted[1]}
            for n in wanted[0] | wanted[1] | present[0] | present[1]
            if (n in wanted[0], n in wanted[1]) != (n in present[0], n in present[1])
        ]
        if changes:
            values: dict[str, Any] = {"tab_head": bindparam("_tab"), "all_head": bindparam("_all")}
            statement = update(JOBS).where(JOBS.c.number == bindparam("_number")).values(**values)
            db.connection().execute(statement, changes)


def _wanted(db: Database, arrays: list[int]) -> tuple[set[int], set[int]]:
    """The numbers of the heads of tabs, and of all: the tasks that wait, or the last submitted.

    The tasks that have not started are one record, with the number of the array.
    """
    columns = JOBS.c.array_id, JOBS.c.tab
    query = select(*columns, func.max(JOBS.c.number), func.min(JOBS.c.number))
    found = db.execute(query.where(JOBS.c.array_id.in_(arrays)).group_by(*columns))
    of_tabs, of_all = set(), defaultdict[int, int](int)
    waiting = set()
    for array, tab, last, first in found:
        waits = tab == JobTab.PENDING.value and first == array
        of_tabs.add(first if waits else last)
        of_all[array] = max(of_all[array], last)
        if waits:
            waiting.add(array)
    return of_tabs, {array if array in waiting else last for array, last in of_all.items()}


def _present(db: Database, arrays: list[int]) -> tuple[set[int], set[int]]:
    columns = JOBS.c.number, JOBS.c.tab_head, JOBS.c.all_head
    heads = JOBS.c.tab_head.is_(True) | JOBS.c.all_head.is_(True)
    rows = db.execute(select(*columns).where(JOBS.c.array_id.in_(arrays), heads)).all()
    return {n for n, tab, _ in rows if tab}, {n for n, _, whole in rows if whole}


def delete_requeued(db: Database, numbers: Sequence[int]) -> None:
    """Delete tasks that left the queue because Slurm has put them back into their array.

    A task that is requeued becomes one of the array's tasks that have not started, which are one
    record; its own record is no more.
    """
    columns = JOBS.c.number, JOBS.c.array_id, JOBS.c.tasks
    alone = JOBS.c.number.in_(numbers), JOBS.c.array_id != JOBS.c.number
    tasks = db.execute(select(*columns).where(*alone)).all()
    arrays = {array for _, array, _ in tasks}
    waits = JOBS.c.tab == JobTab.PENDING.value
    waiting = {
        number: together
        for number, _, together in db.execute(
            select(*columns).where(JOBS.c.number.in_(arrays), waits)
        )
    }
    again = [
        number
        for number, array, task in tasks
        if array in waiting and task.isdecimal() and has_task(waiting[array], int(task))
        if "..." not in waiting[array]  # a shortened list does not say which tasks wait
    ]
    if again:
        db.execute(delete(TEXTS).where(TEXTS.c.number.in_(again)))
        db.execute(delete(JOBS).where(JOBS.c.number.in_(again)))
        choose_heads(db, arrays)
