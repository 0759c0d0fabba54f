"""Slurm's jobs in the database. One worker writes them; the web application only reads, except for
the lock of an extension."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, and_, bindparam, or_, select, update
from sqlmodel import Session as Database

from portal.core.cluster.job_reports import JobState
from portal.core.cluster.queue import QueuePart
from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.query import JobPage, JobQuery
from portal.store.jobs import query as job_query
from portal.store.jobs.merge import (
    ACCOUNTING_LAG,
    by_number,
    delete_requeued,
    from_accounting,
    from_queue,
    keeps_accounting,
    keeps_queue,
    merge,
    save_texts,
)
from portal.store.jobs.old import count_tasks_of_arrays, delete_jobs
from portal.store.jobs.queued import count_queued
from portal.store.jobs.rows import pieces
from portal.store.jobs.sessions import session_like, unlinked
from portal.store.jobs.size import JobsSize, jobs_size
from portal.store.reading import reading
from portal.store.tables import JobHistoryRow
from portal.store.tables.jobs import IS_LIVE, IS_OVER, JOBS, LACKS_TEXTS

PIECE = 500
"""Maximum of rows in one statement."""
SHORTEST, LONGEST = timedelta(seconds=10), timedelta(hours=1)
"""Interval between two queries for a job that accounting does not have."""
GIVE_UP = timedelta(days=7)
"""Age of an end after which accounting is not queried for it any more."""


class JobStore:
    """All jobs that Slurm has reported; the worker writes them. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)
        self._bulk = engine.execution_options(bulk=True)

    # From the queue

    def save(self, changed: Iterable[Job], now: datetime) -> None:
        """Store the queue's report of these jobs; keeps ends that accounting reported."""
        with Database(self._bulk) as db:
            for piece in pieces(list(changed), PIECE):
                merge(db, {int(job.id): from_queue(job, now) for job in piece}, keeps_queue)
            db.commit()

    def leave(self, ids: Collection[str], now: datetime) -> None:
        """Mark jobs that have left the queue; accounting will be queried for their ends."""
        with Database(self._engine) as db:
            for piece in pieces(sorted(map(int, ids)), PIECE):
                delete_requeued(db, piece)
                matching = JOBS.c.number.in_(piece), JOBS.c.left.is_(None)
                live = JOBS.c.tab != JobTab.ENDED.value
                values = {"left": now, "ask_at": now + ACCOUNTING_LAG}
                db.execute(update(JOBS).where(*matching, live).values(**values))
                db.execute(update(JOBS).where(*matching).values(left=now))
            db.commit()

    def live_ids(self) -> set[str]:
        """Numbers of the last poll's jobs that are live or lack texts, for a starting worker."""
        # Only of the queue: a job that left it while no worker ran never gets its texts.
        live = select(JOBS.c.number).where(IS_LIVE, JOBS.c.left.is_(None))
        textless = select(JOBS.c.number).where(LACKS_TEXTS)
        with reading(self._readers) as db:
            return set(map(str, [*db.scalars(live), *db.scalars(textless)]))

    def extended(self, job_id: str, limit: int | None, deadline: datetime | None) -> None:
        """Store a running job's new limit, in minutes; no change if it is not running any more."""
        # Only these columns: the worker may have stored the job's end meanwhile.
        runs = JOBS.c.number == int(job_id), JOBS.c.state == JobState.RUNNING.value
        with Database(self._engine) as db:
            db.execute(update(JOBS).where(*runs).values(time_limit=limit, deadline=deadline))
            db.commit()

    def note_cancelled(self, ids: Collection[str], by: str) -> None:
        """Store the user who cancelled these jobs (numbers of records), to explain their ends."""
        with Database(self._engine) as db:
            for piece in pieces(sorted(map(int, ids)), PIECE):
                db.execute(update(JOBS).where(JOBS.c.number.in_(piece)).values(stopped_by=by))
            db.commit()

    # Texts

    def save_texts(self, texts: Mapping[str, JobTexts]) -> None:
        """Store the texts of jobs, by number, and link jobs that are named after sessions."""
        with Database(self._engine) as db:
            for piece in pieces(sorted(texts, key=int), PIECE):
                save_texts(db, {int(number): texts[number] for number in piece})
            db.commit()

    def without_session(self, each: int, tab: JobTab = JobTab.PENDING) -> list[Job]:
        """Live jobs on a tab whose name could be a session's id, without a stored session.

        The first `each` of an owner; of their texts only the name.
        """
        with reading(self._readers) as db:
            return session_like(db, each, tab)

    def link_sessions(self) -> None:
        """Link the live jobs of sessions that were stored after the jobs' texts."""
        with reading(self._readers) as db:
            links = unlinked(db)
        if links:
            with Database(self._engine) as db:
                by_number(db, {"session": bindparam("_session")}, links)
                db.commit()

    def without_texts(self, limit: int) -> list[str]:
        """Numbers of jobs in the queue whose texts are missing, newest first."""
        query = select(JOBS.c.number).where(LACKS_TEXTS).order_by(JOBS.c.number.desc()).limit(limit)
        with reading(self._readers) as db:
            return list(map(str, db.scalars(query)))

    # From accounting

    def unsettled(self, now: datetime, limit: int) -> list[Job]:
        """Jobs for whose end accounting is due to be queried, the longest due first."""
        with reading(self._readers) as db:
            due = (JOBS.c.ask_at <= now,)
            return job_query.jobs_where(db, *due, order=JOBS.c.ask_at, limit=limit)

    def settle(self, ended: Iterable[Job]) -> None:
        """Store accounting's report of ended jobs; keeps texts that are already stored."""
        with Database(self._engine) as db:
            over = [job for job in ended if job.report.state.over and job.report.submitted]
            for piece in pieces(over, PIECE):
                by_id = {int(job.id): job for job in piece}
                values = {number: from_accounting(job) for number, job in by_id.items()}
                merge(db, values, keeps_accounting)
                textless = select(JOBS.c.number).where(
                    JOBS.c.number.in_(list(by_id)), JOBS.c.texted.is_(False)
                )
                unknown = [n for n in db.scalars(textless) if by_id[n].texts != JobTexts()]
                save_texts(db, {number: by_id[number].texts for number in unknown})
            db.commit()

    def postpone(self, ids: Collection[str], now: datetime) -> None:
        """Query accounting for these jobs later, with growing intervals, since it lacks their ends.
        Those that are not in the queue either are marked as gone."""
        with Database(self._engine) as db:
            for piece in pieces(sorted(map(int, ids)), PIECE):
                # The queue may have reported meanwhile that a job is live again.
                conditions = JOBS.c.number.in_(piece), JOBS.c.ask_at.is_not(None)
                gone = JOBS.c.left.is_not(None), JOBS.c.tab != JobTab.ENDED.value
                first = JOBS.c.gone.is_(None)
                db.execute(update(JOBS).where(*conditions, *gone, first).values(gone=now))
                columns = JOBS.c.number, JOBS.c.gone, JOBS.c.ended, JOBS.c.tab
                rows = db.execute(select(*columns).where(*conditions)).all()
                over = JobTab.ENDED.value
                later = [
                    {"_number": n, "_at": _next(now, ended if tab == over else since or now)}
                    for n, since, ended, tab in rows
                ]
                if later:
                    by_number(db, {"ask_at": bindparam("_at")}, later)
            db.commit()

    def known_until(self) -> datetime | None:
        """The time up to which all ended jobs were read from accounting; None at first."""
        with reading(self._readers) as db:
            row = db.get(JobHistoryRow, 1)
            return row.known_until if row else None

    def set_known_until(self, moment: datetime) -> None:
        """Store the time up to which all ended jobs were read from accounting."""
        with Database(self._engine) as db:
            db.merge(JobHistoryRow(id=1, known_until=moment))
            db.commit()

    def delete_ended(self, before: datetime) -> int:
        """Delete jobs that ended, or were gone, before a time, some at a time; returns how many."""
        with Database(self._engine) as db:
            number = delete_jobs(db, before, PIECE)
            db.commit()
        return number

    def count_tasks(self, before: datetime) -> int:
        """Replace rows of arrays' tasks that ended before a time, except failed ones, by their
        number; some at a time. Returns how many."""
        with Database(self._engine) as db:
            number = count_tasks_of_arrays(db, before, PIECE)
            db.commit()
        return number

    def size(self, now: datetime) -> JobsSize:
        """The number of jobs, and the size of the database."""
        with reading(self._readers) as db:
            return jobs_size(db, now)

    # For pages

    def query(self, query: JobQuery, now: datetime) -> JobPage:
        """One page of the list."""
        with reading(self._readers) as db:
            return job_query.query_page(db, query, now)

    def counts(self, query: JobQuery, now: datetime) -> dict[JobTab, int]:
        """Number of rows on each tab that match all filters but the tab and the state."""
        with reading(self._readers) as db:
            return job_query.count_tabs(db, query, now)

    def ended_since(self, owner: str, since: datetime, most: int) -> list[Job]:
        """A user's jobs and tasks that ended since, the first of them; of their texts the name."""
        mine = IS_OVER, JOBS.c.owner == owner, JOBS.c.ended >= since
        with reading(self._readers) as db:
            return job_query.jobs_where(db, *mine, order=JOBS.c.ended, limit=most, texts=False)

    def live_arrays(self, arrays: Collection[str]) -> set[str]:
        """Those of these arrays that have tasks in the queue."""
        query = select(JOBS.c.array_id).distinct()
        with reading(self._readers) as db:
            numbers = db.scalars(query.where(IS_LIVE, JOBS.c.array_id.in_(map(int, arrays))))
            return set(map(str, numbers))

    def states_of_array(self, array: str) -> Mapping[JobState, int]:
        """The number of all tasks of an array in each state, also of those without rows."""
        with reading(self._readers) as db:
            return job_query.states_of_array(db, array)

    def queued(self, part: QueuePart) -> int:
        """The number of pending and running jobs in this part of the queue, for MaxSubmitJobs etc.

        Every task of an array counts. The queue is that of the last poll: jobs submitted since are
        missing, and jobs that ended since are counted.
        """
        with reading(self._readers) as db:
            return count_queued(db, part)

    def get(self, shown_id: str) -> Job | None:
        """A job by its number as Slurm's commands show it: 123, 123_4 or 123+1."""
        with reading(self._readers) as db:
            return job_query.by_shown_id(db, shown_id)

    def get_many(self, ids: Collection[str]) -> list[Job]:
        """Jobs by the numbers of their records or of their arrays; of their texts only the name.

        Of an array: its tasks that are not over, else one of them.
        """
        numbers = [int(id) for id in ids if id.isascii() and id.isdecimal() and len(id) <= 10]
        jobs: dict[str, Job] = {}
        with reading(self._readers) as db:
            for piece in pieces(numbers, PIECE):
                # Of the tasks that are over only the head: there may be hundreds of thousands.
                live = or_(JOBS.c.tab != JobTab.ENDED.value, JOBS.c.all_head.is_(True))
                tasks = and_(JOBS.c.array_id.in_(piece), live)
                condition = or_(JOBS.c.number.in_(piece), tasks)
                jobs |= {job.id: job for job in job_query.jobs_where(db, condition, texts=False)}
        return list(jobs.values())

    def ahead(self, jobs: Collection[Job]) -> dict[str, int]:
        """Number of jobs ahead of each pending one that waits for its turn, by job number."""
        with reading(self._readers) as db:
            return job_query.ahead(db, jobs)

    def owners(self, most: int) -> list[str]:
        """Owners of jobs, sorted; at most `most`."""
        with reading(self._readers) as db:
            return job_query.owners(db, most)

    # One extension at a time

    def claim(self, job_id: str, now: datetime, lease: timedelta) -> bool:
        """Take a job's lock for an extension; False if it was taken less than `lease` ago."""
        free = or_(JOBS.c.extending.is_(None), JOBS.c.extending < now - lease)
        return self._set_extending(job_id, free, now)

    def release_claim(self, job_id: str, begun: datetime) -> None:
        """Release the lock that was taken at this time."""
        self._set_extending(job_id, JOBS.c.extending == begun, None)

    def _set_extending(self, job_id: str, when: Any, value: datetime | None) -> bool:
        statement = update(JOBS).where(JOBS.c.number == int(job_id), when).values(extending=value)
        with Database(self._engine) as db:
            result: Any = db.execute(statement)
            db.commit()
            return bool(result.rowcount)


def _next(now: datetime, since: datetime) -> datetime | None:
    """When to query accounting again for an end at `since`; None: never."""
    waited = now - since
    return None if waited > GIVE_UP else now + min(max(waited, SHORTEST), LONGEST)
