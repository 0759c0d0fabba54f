"""Queries for one page of the list of jobs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    Select,
    String,
    and_,
    exists,
    func,
    literal,
    or_,
    select,
    tuple_,
    type_coerce,
    union_all,
)
from sqlmodel import Session as Database

from portal.core.cluster.job_reports import JobState
from portal.core.cluster.queue import QUEUE_REASONS
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.query import MAX_SEARCHED, JobPage, JobQuery, JobRow
from portal.core.jobs.tasks import count_tasks, has_task
from portal.store.jobs.rows import COUNTED, TEXTS, job_of, on_tab, pieces, texts_of
from portal.store.paging import Listing, read_piece
from portal.store.tables.jobs import IS_HEAD, IS_HEAD_OF_ALL, IS_LIVE, IS_PENDING, JOBS

_COLUMNS = [column for column in JOBS.c if not column.name.startswith("_")]
_KEYS: dict[str, ColumnElement[Any]] = {
    "submitted": JOBS.c.submitted,
    "name": JOBS.c.name_key,
    "owner": JOBS.c.owner,
    "status": JOBS.c.status_key,
    "partition": JOBS.c.partition,
    "started": JOBS.c.started,
    "ended": JOBS.c.ended,
    "time_limit": JOBS.c.time_limit,
    "priority": JOBS.c.priority,
    "cpus": JOBS.c.cpus,
    "memory": JOBS.c.memory_mb,
}
_TASKS = JOBS.alias("tasks")
LIVE_TABS = (JobTab.PENDING, JobTab.RUNNING)
_PIECE = 500


# The list


def query_page(db: Database, query: JobQuery, now: datetime) -> JobPage:
    """Read one page: one row for each array, unless the query selects an array's tasks."""
    key = _KEYS[query.sort.key]
    listing = Listing(query.sort, key, JOBS.c.number, query.place, query.limit)
    since = _searched_since(db, query, now)
    matching = select(JOBS.c.number).where(*_conditions(query, now, since))
    piece = read_piece(db, matching, listing)
    by_number = {int(job.id): job for job in jobs_where(db, JOBS.c.number.in_(piece.rows))}
    jobs = [by_number[number] for number in piece.rows]
    if query.array is None:
        rows = tuple(_rows_of_arrays(db, query.state, jobs))
        return JobPage(rows, piece.following, piece.previous, since)
    counted = 0 if query.state in LIVE_TABS else _counted_tasks(db, query)
    return JobPage(tuple(map(JobRow, jobs)), piece.following, piece.previous, counted=counted)


def count_tabs(db: Database, query: JobQuery, now: datetime) -> dict[JobTab, int]:
    """The number of rows on each tab that match all filters but the tab and the state, up to
    MAX_SEARCHED."""
    counted = dict.fromkeys(JobTab, 0)
    everywhere = query.model_copy(update={"state": None, "slurm_state": None})
    for tab in JobTab:
        tab_query = everywhere.model_copy(update={"state": tab})
        conditions = _conditions(tab_query, now, _searched_since(db, tab_query, now))
        matching = select(JOBS.c.number).where(*conditions).limit(MAX_SEARCHED).subquery()
        counted[tab] = db.scalar(select(func.count()).select_from(matching)) or 0
    if query.array is not None:
        counted[JobTab.ENDED] += _counted_tasks(db, query)
    return counted


def _searched_since(db: Database, query: JobQuery, now: datetime) -> datetime | None:
    """The time of submission of the oldest ended job that is searched; None: all are."""
    if query.array is not None or query.state in LIVE_TABS or not query.reads_all:
        return None
    newest = select(JOBS.c.submitted).where(*_of_list(query)).order_by(JOBS.c.submitted.desc())
    oldest: datetime | None = db.scalar(newest.offset(MAX_SEARCHED).limit(1))
    asked = query.days is not None and now - timedelta(days=query.days)
    return None if oldest and asked and asked >= oldest else oldest


def _conditions(query: JobQuery, now: datetime, since: datetime | None) -> list[Any]:
    conditions = list(_of_list(query))
    if query.days is not None:
        conditions.append(JOBS.c.submitted >= now - timedelta(days=query.days))
    if since is not None:
        conditions.append(_is_searched(query, since))
    if query.account is not None:
        # Slurm's names of accounts do not depend on case.
        conditions.append(func.lower(JOBS.c.account) == query.account.lower())
    if query.sessions != "yes":
        is_session = JOBS.c.session.is_not(None)
        conditions.append(is_session if query.sessions == "only" else ~is_session)
    if of_tasks := _of_tasks(query, JOBS):
        if query.array is not None:
            return [*conditions, *of_tasks]
        of_tab = [] if query.state is None else [_TASKS.c.tab == query.state.value]
        same = _TASKS.c.array_id == JOBS.c.array_id
        tasks = select(_TASKS.c.number).where(same, *of_tab, *_of_tasks(query, _TASKS))
        # OFFSET, since PostgreSQL would read the tasks of all arrays to hash them.
        any_task = tasks.offset(0).exists()
        of_array = and_(JOBS.c.array_id.is_not(None), any_task)
        conditions.append(or_(and_(*of_tasks), of_array))
    return conditions


def _is_searched(query: JobQuery, since: datetime) -> Any:
    """Whether a job is live, or was submitted since a time."""
    lately = JOBS.c.submitted >= since
    if query.state is not None:
        return lately
    # Two queries, since there is no index of both conditions.
    parts = (IS_LIVE,), (*_of_list(query), lately)
    numbers = (select(JOBS.c.number).where(*part).correlate(None) for part in parts)
    return JOBS.c.number.in_(union_all(*numbers))


def _of_list(query: JobQuery) -> Iterable[Any]:
    """The conditions for rows of this list."""
    if query.owner is not None:
        yield JOBS.c.owner == query.owner
    if query.state is not None:
        yield from on_tab(query.state)
    if query.array is not None:
        yield JOBS.c.array_id == int(query.array)
    else:
        yield IS_HEAD_OF_ALL if query.state is None else IS_HEAD


def _of_tasks(query: JobQuery, rows: Any) -> list[Any]:
    """The filters that a single task of an array has to match."""
    conditions = []
    if query.slurm_state is not None:
        conditions.append(rows.c.state == query.slurm_state.value)
    if query.partition is not None:  # a pending job may have several
        listed = literal(",") + rows.c.partition + literal(",")
        conditions.append(listed.contains(f",{query.partition},", autoescape=True))
    return [*conditions, *(_has(rows, word, query.owner is None) for word in query.words)]


def _has(rows: Any, word: str, owners: bool) -> Any:
    """Whether a word occurs in a job; % and _ are not wildcards."""
    texts = [rows.c.name, rows.c.partition, rows.c.account, type_coerce(rows.c.nodes, String)]
    if owners:  # among one user's jobs every row would match
        texts.append(rows.c.owner)
    conditions = [text.icontains(word, autoescape=True) for text in texts]
    if match := re.fullmatch(r"([0-9]{1,10})(?:_\[?([0-9]{1,9})?.*|\+[0-9]*)?", word, re.ASCII):
        number = int(match[1])
        conditions += [
            column == number for column in (rows.c.number, rows.c.array_id, rows.c.het_id)
        ]
    return or_(*conditions)


def _rows_of_arrays(db: Database, tab: JobTab | None, jobs: Sequence[Job]) -> Iterable[JobRow]:
    """The rows of jobs, and of arrays with the number of their tasks in each state."""
    counted = {} if tab in LIVE_TABS else _counted(db, jobs)
    states = _states(db, tab, jobs)
    for job in jobs:
        of_array, counts = states.get(job.array_id, {}), counted.get(job.array_id, {})
        both = {s: of_array.get(s, 0) + counts.get(s, 0) for s in (*of_array, *counts)}
        yield JobRow(job, both)


def _counted(db: Database, jobs: Iterable[Job]) -> dict[str, dict[JobState, int]]:
    """The number of tasks without rows in each state, by array."""
    arrays = {int(job.array_id) for job in jobs if job.array_id}
    counts: dict[str, dict[JobState, int]] = defaultdict(dict)
    if arrays:
        for array, state, number in db.execute(
            select(COUNTED).where(COUNTED.c.array_id.in_(arrays))
        ):
            counts[str(array)][JobState(state)] = number
    return counts


def states_of_array(db: Database, array: str) -> Mapping[JobState, int]:
    """The number of all tasks of an array in each state."""
    head = by_shown_id(db, array)
    rows = _rows_of_arrays(db, None, [head]) if head else ()
    return next((row.states for row in rows), {})


def _counted_tasks(db: Database, query: JobQuery) -> int:
    """The number of tasks without rows of the array that the query names.

    Of these only state and owner are known: with other filters, none of them match.
    """
    others = (query.words, query.partition, query.account, query.days, query.sessions == "only")
    if any(others):
        return 0
    array = int(query.array or 0)
    number = select(func.sum(COUNTED.c.number)).where(COUNTED.c.array_id == array)
    if query.slurm_state is not None:
        number = number.where(COUNTED.c.state == query.slurm_state.value)
    if query.owner is not None:
        of_owner = JOBS.c.array_id == array, JOBS.c.owner == query.owner
        number = number.where(exists().where(*of_owner))
    return db.scalar(number) or 0


def _states(
    db: Database, tab: JobTab | None, jobs: Iterable[Job]
) -> dict[str, dict[JobState, int]]:
    """The number of rows of tasks in each state, by array."""
    heads = {int(job.array_id): job for job in jobs if job.array_id}
    if not heads:
        return {}
    columns = JOBS.c.array_id, JOBS.c.state
    query = select(*columns, func.count()).where(JOBS.c.array_id.in_(heads))
    if tab is not None:
        query = query.where(JOBS.c.tab == tab.value)
    counts: dict[str, dict[JobState, int]] = defaultdict(dict)
    for array, state, number in db.execute(query.group_by(*columns)):
        counts[str(array)][JobState(state)] = number
    for array, head in heads.items():  # tasks that have not started are one record
        if head.id == head.array_id:
            counts[str(array)][head.report.state] += count_tasks(head.tasks) - 1
    return dict(counts)


# Single jobs


def jobs_where(
    db: Database,
    *conditions: Any,
    order: Any = JOBS.c.number,
    limit: int | None = None,
    texts: bool = True,
) -> list[Job]:
    """The jobs of these rows, with all their texts or with their names only."""
    query = select(*_COLUMNS).where(*conditions).order_by(order).limit(limit)
    rows = [row._mapping for row in db.execute(query)]
    texts_by_number: dict[int, RowMapping] = {}
    for piece in pieces([row["number"] for row in rows if texts], _PIECE):
        text_rows = db.execute(select(TEXTS).where(TEXTS.c.number.in_(piece)))
        texts_by_number |= {row.number: row._mapping for row in text_rows}
    return [job_of(row, texts_of(row["name"], texts_by_number.get(row["number"]))) for row in rows]


_SHOWN = re.compile(
    r"(?P<number>[0-9]{1,10})"
    r"(?:_(?P<task>[0-9]{1,9})|_\[(?P<tasks>[0-9,:%.-]{1,200})\]|\+(?P<offset>[0-9]{1,9}))?",
    re.ASCII,
)


def by_shown_id(db: Database, shown_id: str) -> Job | None:
    """A job by its number as Slurm shows it; a task that has not started is its array's record."""
    match = _SHOWN.fullmatch(shown_id)
    if match is None:
        return None
    number = int(match["number"])
    if match["offset"] is not None:
        offset = JOBS.c.het_offset == int(match["offset"])
        return next(iter(jobs_where(db, JOBS.c.het_id == number, offset)), None)
    if match["task"] is not None:
        return _task(db, number, match["task"])
    same = jobs_where(db, JOBS.c.number == number)
    if match["tasks"] is not None:
        return next((job for job in same if job.array_id and not job.tasks.isdecimal()), None)
    head = JOBS.c.array_id == number, IS_HEAD_OF_ALL
    return next(iter(same or jobs_where(db, *head)), None)


def _task(db: Database, array: int, task: str) -> Job | None:
    tasks = jobs_where(db, JOBS.c.array_id == array, JOBS.c.tasks == str(int(task)))
    if tasks:
        return tasks[-1]
    together = jobs_where(db, JOBS.c.number == array, JOBS.c.array_id == array)
    return next((job for job in together if has_task(job.tasks, int(task))), None)


# Places in the queue


def ahead(db: Database, jobs: Collection[Job]) -> dict[str, int]:
    """The same positions as core.cluster.queue.queue_positions, for these jobs.

    Rows are counted between neighbouring jobs, so that each row is counted once.
    """
    queues: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        report = job.report
        waits = report.state is JobState.PENDING and report.reason in QUEUE_REASONS
        if waits and report.priority > 0 and report.submitted is not None:
            queues[report.partition].append(job)
    positions: dict[str, int] = {}
    for partition, queue in queues.items():
        total, before = 0, None
        for job in sorted(queue, key=_queue_key):
            total += db.scalar(_between(partition, before, job)) or 0
            positions[job.id], before = total, job
    return positions


def _queue_key(job: Job) -> tuple[int, Any, int]:
    return -job.report.priority, job.report.submitted, int(job.id)


def _between(partition: str, before: Job | None, job: Job) -> Select[Any]:
    """The query of the number of jobs between `before` (None: the head of the queue) and `job`."""
    columns = JOBS.c.place, JOBS.c.submitted, JOBS.c.number
    position = tuple_(*columns)
    reasons = [reason for reason in QUEUE_REASONS if reason is not None]
    conditions = [
        IS_PENDING,
        JOBS.c.partition == partition,
        JOBS.c.place < 0,
        or_(JOBS.c.reason.is_(None), JOBS.c.reason.in_(reasons)),
        position < tuple_(*map(literal, _queue_key(job), (column.type for column in columns))),
    ]
    if before is not None:
        earlier = map(literal, _queue_key(before), (column.type for column in columns))
        conditions.append(position >= tuple_(*earlier))
    return select(func.count()).select_from(JOBS).where(*conditions)


def owners(db: Database, most: int) -> list[str]:
    """Owners, sorted; a recursive query (loose index scan) finds each in the index."""
    least = select(func.min(JOBS.c.owner).label("owner")).where(IS_HEAD_OF_ALL)
    first = least.cte("owners", recursive=True)
    following = least.where(JOBS.c.owner > first.c.owner)
    step = select(following.scalar_subquery()).where(first.c.owner.is_not(None))
    every = first.union_all(step)
    return [owner for owner in db.scalars(select(every.c.owner).limit(most)) if owner is not None]
