"""Slurm's jobs in the database. One worker writes them; the web application only reads, but for
an extension's lock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Engine, and_, bindparam, delete, or_, select, update
from sqlmodel import Session as Database

from portal.core.cluster.jobs import JobState
from portal.core.cluster.queue import QueuePart
from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.query import JobPage, JobQuery
from portal.store.jobs import query as job_query
from portal.store.jobs.heads import choose_heads, delete_requeued
from portal.store.jobs.merge import (
    ACCOUNTING_LAG,
    from_accounting,
    from_queue,
    keeps_accounting,
    keeps_queue,
    merge,
)
from portal.store.jobs.queued import count_queued
from portal.store.jobs.rows import JOBS, TEXTS, pieces
from portal.store.jobs.sessions import session_like, unlinked
from portal.store.jobs.texts import by_number, save_texts
from portal.store.reading import reading
from portal.store.tables import JobHistoryRow

PIECE = 500
"""Rows of one statement."""
SHORTEST, LONGEST = timedelta(seconds=10), timedelta(hours=1)
"""Between two questions about a job that accounting does not know."""
GIVE_UP = timedelta(days=7)
_UNTOLD = JOBS.c.texted.is_(False) & JOBS.c.tab.in_([tab.value for tab in JobTab])
"""Jobs whose texts are not known; the tabs are named so that the index serves."""


class JobStore:
    """All jobs that Slurm has reported; the worker writes them. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    # What the queue says

    def save(self, changed: Iterable[Job], now: datetime) -> None:
        """Store what the queue says of these jobs; what accounting told of an end is kept."""
        with Database(self._engine) as db:
            for piece in pieces(list(changed), PIECE):
                merge(db, {int(job.id): from_queue(job, now) for job in piece}, keeps_queue)
            db.commit()

    def leave(self, ids: Collection[str], now: datetime) -> None:
        """Mark jobs that the queue no longer has; accounting says how they ended."""
        with Database(self._engine) as db:
            for piece in pieces(sorted(map(int, ids)), PIECE):
                delete_requeued(db, piece)
                these = JOBS.c.number.in_(piece), JOBS.c.left.is_(None)
                live = JOBS.c.tab != JobTab.ENDED.value
                asked = {"left": now, "ask_at": now + ACCOUNTING_LAG}
                db.execute(update(JOBS).where(*these, live).values(**asked))
                db.execute(update(JOBS).where(*these).values(left=now))
            db.commit()

    def live_ids(self) -> set[str]:
        """The numbers of all jobs that the queue had last and of which it was to tell more, for a
        worker that starts."""
        live = JOBS.c.tab.in_([JobTab.PENDING.value, JobTab.RUNNING.value])
        # Texts of jobs that left the queue while no worker ran would be asked for again and again.
        wanted = select(JOBS.c.number).where(JOBS.c.left.is_(None))
        with reading(self._readers) as db:
            found = [*db.scalars(wanted.where(live)), *db.scalars(wanted.where(_UNTOLD))]
            return set(map(str, found))

    def extended(self, job_id: str, limit: int | None, deadline: datetime | None) -> None:
        """Store a running job's new limit, in minutes; nothing if it does not run any more."""
        # Only these columns: the worker may have stored the job's end since Slurm was asked.
        runs = JOBS.c.number == int(job_id), JOBS.c.state == JobState.RUNNING.value
        with Database(self._engine) as db:
            db.execute(update(JOBS).where(*runs).values(time_limit=limit, deadline=deadline))
            db.commit()

    def note_cancelled(self, ids: Collection[str], by: str) -> None:
        """Store who cancelled jobs, by the numbers of their records, to explain their ends."""
        with Database(self._engine) as db:
            for piece in pieces(sorted(map(int, ids)), PIECE):
                db.execute(update(JOBS).where(JOBS.c.number.in_(piece)).values(stopped_by=by))
            db.commit()

    # What the owners wrote

    def save_texts(self, texts: Mapping[str, JobTexts]) -> None:
        """Store the texts of jobs, by number; jobs of sessions are recognised by their names."""
        with Database(self._engine) as db:
            for piece in pieces(sorted(texts, key=int), PIECE):
                save_texts(db, {int(number): texts[number] for number in piece})
            db.commit()

    def without_session(self, each: int) -> list[Job]:
        """Pending jobs of which no session is known, and whose names could be sessions' ids.

        At most `each` of one owner, the first submitted ones; without texts but the name.
        """
        with reading(self._readers) as db:
            return session_like(db, each)

    def link_sessions(self) -> None:
        """Mark the live jobs of sessions that were not known when the jobs' texts were stored."""
        with reading(self._readers) as db:
            found = unlinked(db)
        if found:
            with Database(self._engine) as db:
                by_number(db, {"session": bindparam("_session")}, found)
                db.commit()

    def without_texts(self, limit: int) -> list[str]:
        """Numbers of jobs in the queue whose texts are not known, newest first."""
        wanted = (
            select(JOBS.c.number)
            .where(_UNTOLD, JOBS.c.left.is_(None))
            .order_by(JOBS.c.number.desc())
            .limit(limit)
        )
        with reading(self._readers) as db:
            return list(map(str, db.scalars(wanted)))

    # What accounting says

    def unsettled(self, now: datetime, limit: int) -> list[Job]:
        """Jobs whose end accounting is to be asked about, the longest due first."""
        with reading(self._readers) as db:
            due = (JOBS.c.ask_at <= now,)
            return job_query.jobs_where(db, *due, order=JOBS.c.ask_at, limit=limit)

    def settle(self, ended: Iterable[Job]) -> None:
        """Store what accounting says of jobs that are over; texts that are known are kept."""
        with Database(self._engine) as db:
            over = [job for job in ended if job.report.state.over and job.report.submitted]
            for piece in pieces(over, PIECE):
                found = {int(job.id): job for job in piece}
                values = {number: from_accounting(job) for number, job in found.items()}
                merge(db, values, keeps_accounting)
                untold = select(JOBS.c.number).where(
                    JOBS.c.number.in_(list(found)), JOBS.c.texted.is_(False)
                )
                wanted = [n for n in db.scalars(untold) if found[n].texts != JobTexts()]
                save_texts(db, {number: found[number].texts for number in wanted})
            db.commit()

    def postpone(self, ids: Collection[str], now: datetime) -> None:
        """Accounting does not know the end of these jobs: it is asked again later, ever more
        seldom. Those that the queue lacks are gone from now on."""
        with Database(self._engine) as db:
            for piece in pieces(sorted(map(int, ids)), PIECE):
                # Since accounting was asked, the queue may have told that a job lives again.
                asked = JOBS.c.number.in_(piece), JOBS.c.ask_at.is_not(None)
                gone = JOBS.c.left.is_not(None), JOBS.c.tab != JobTab.ENDED.value
                first = JOBS.c.gone.is_(None)
                db.execute(update(JOBS).where(*asked, *gone, first).values(gone=now))
                columns = JOBS.c.number, JOBS.c.gone, JOBS.c.ended, JOBS.c.tab
                rows = db.execute(select(*columns).where(*asked)).all()
                over = JobTab.ENDED.value
                later = [
                    {"_number": n, "_at": _next(now, ended if tab == over else since or now)}
                    for n, since, ended, tab in rows
                ]
                if later:
                    by_number(db, {"ask_at": bindparam("_at")}, later)
            db.commit()

    def known_until(self) -> datetime | None:
        """The time until which accounting has been asked for all that ended; None at first."""
        with reading(self._readers) as db:
            row = db.get(JobHistoryRow, 1)
            return row.known_until if row else None

    def set_known_until(self, moment: datetime) -> None:
        """Store that time."""
        with Database(self._engine) as db:
            db.merge(JobHistoryRow(id=1, known_until=moment))
            db.commit()

    def delete_ended(self, before: datetime) -> int:
        """Delete jobs that ended, or were gone, before a time; returns how many."""
        # In any order, so that the index of ends serves.
        over = JOBS.c.tab == JobTab.ENDED.value, JOBS.c.tab_head.in_([True, False])
        old = (*over, JOBS.c.ended < before), (JOBS.c.gone < before,)
        found = select(JOBS.c.number, JOBS.c.array_id).limit(PIECE * 10)
        with reading(self._readers) as db:
            rows = {row for which in old for row in db.execute(found.where(*which)).all()}
        with Database(self._engine) as db:
            for piece in pieces([number for number, _ in rows], PIECE):
                db.execute(delete(TEXTS).where(TEXTS.c.number.in_(piece)))
                db.execute(delete(JOBS).where(JOBS.c.number.in_(piece)))
            choose_heads(db, {array for _, array in rows if array is not None})
            db.commit()
        return len(rows)

    # What pages show

    def query(self, query: JobQuery, now: datetime) -> JobPage:
        """One page of the list."""
        with reading(self._readers) as db:
            return job_query.query_page(db, query, now)

    def counts(self, query: JobQuery, now: datetime) -> dict[JobTab, int]:
        """Number of rows on each tab that match all filters but the tab and the state."""
        with reading(self._readers) as db:
            return job_query.count_tabs(db, query, now)

    def queued(self, part: QueuePart) -> int:
        """How many jobs wait or run in this part of the queue, for MaxSubmitJobs and its like.

        Every task of an array counts. The queue as last polled: jobs that were submitted in the
        last seconds are missing, and those that ended in them are counted.
        """
        with reading(self._readers) as db:
            return count_queued(db, part)

    def get(self, shown_id: str) -> Job | None:
        """A job by its number as Slurm's commands show it: 123, 123_4 or 123+1."""
        with reading(self._readers) as db:
            return job_query.by_shown_id(db, shown_id)

    def get_many(self, ids: Collection[str]) -> list[Job]:
        """Jobs by the numbers of their records or of their arrays, without texts but the name.

        Of an array: its tasks that are not over, or else one of them.
        """
        numbers = [int(one) for one in ids if one.isascii() and one.isdecimal() and len(one) <= 10]
        found: dict[str, Job] = {}
        with reading(self._readers) as db:
            for piece in pieces(numbers, PIECE):
                # Of the tasks that are over, one says so: there may be hundreds of thousands.
                live = or_(JOBS.c.tab != JobTab.ENDED.value, JOBS.c.all_head.is_(True))
                tasks = and_(JOBS.c.array_id.in_(piece), live)
                which = or_(JOBS.c.number.in_(piece), tasks)
                found |= {job.id: job for job in job_query.jobs_where(db, which, texts=False)}
        return list(found.values())

    def ahead(self, jobs: Collection[Job]) -> dict[str, int]:
        """Number of jobs ahead of each pending one whose place in the queue matters, by number."""
        with reading(self._readers) as db:
            return job_query.ahead(db, jobs)

    def owners(self) -> list[str]:
        """Everybody who has jobs here."""
        with reading(self._readers) as db:
            return job_query.owners(db)

    # One extension at a time

    def claim(self, job_id: str, now: datetime, lease: timedelta) -> bool:
        """Take a job's lock for an extension; False if it is taken, and not longer than this."""
        free = or_(JOBS.c.extending.is_(None), JOBS.c.extending < now - lease)
        return self._set_extending(job_id, free, now)

    def release_claim(self, job_id: str, begun: datetime) -> None:
        """Give back the lock that was taken at this time."""
        self._set_extending(job_id, JOBS.c.extending == begun, None)

    def _set_extending(self, job_id: str, when: Any, value: datetime | None) -> bool:
        changed = update(JOBS).where(JOBS.c.number == int(job_id), when).values(extending=value)
        with Database(self._engine) as db:
            done: Any = db.execute(changed)
            db.commit()
            return bool(done.rowcount)


def _next(now: datetime, since: datetime) -> datetime | None:
    """When to ask again about an end that is this old; None: never."""
    waited = now - since
    return None if waited > GIVE_UP else now + min(max(waited, SHORTEST), LONGEST)
