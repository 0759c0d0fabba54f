"""Slurm's jobs in the database. One worker writes them; the web application only reads, but for
an extension's lock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Engine, bindparam, delete, or_, select, update
from sqlmodel import Session as Database

from portal.adapters.db.jobs import query as job_query
from portal.adapters.db.jobs.heads import choose_heads, delete_requeued
from portal.adapters.db.jobs.rows import (
    JOBS,
    TEXTS,
    Values,
    pieces,
    queue_values,
)
from portal.adapters.db.jobs.saving import keeps_accounting, keeps_queue, save_rows
from portal.adapters.db.jobs.texts import by_number, save_texts
from portal.adapters.db.tables import JobHistoryRow
from portal.core.interfaces.jobs import JobStore
from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.query import JobPage, JobQuery

PIECE = 500
"""Rows of one statement."""
ACCOUNTING_LAG = timedelta(seconds=5)
"""How long accounting may lag behind the queue in recording the end of a job."""
SHORTEST, LONGEST = timedelta(seconds=10), timedelta(hours=1)
"""Between two questions about a job that accounting does not know."""
GIVE_UP = timedelta(days=7)


class JobTables(JobStore):
    """JobStore over SQLAlchemy's tables."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    # What the queue says

    def save(self, changed: Iterable[Job], now: datetime) -> None:
        with Database(self._engine) as db:
            for piece in pieces(list(changed), PIECE):
                save_rows(db, {int(job.id): _from_queue(job, now) for job in piece}, keeps_queue)
            db.commit()

    def leave(self, ids: Collection[str], now: datetime) -> None:
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
        wanted = select(JOBS.c.number).where(
            JOBS.c.tab.in_([JobTab.PENDING.value, JobTab.RUNNING.value]), JOBS.c.left.is_(None)
        )
        with Database(self._readers) as db:
            return {str(number) for number in db.scalars(wanted)}

    def note_cancelled(self, ids: Collection[str], by: str) -> None:
        with Database(self._engine) as db:
            for piece in pieces(sorted(map(int, ids)), PIECE):
                db.execute(update(JOBS).where(JOBS.c.number.in_(piece)).values(stopped_by=by))
            db.commit()

    # What the owners wrote

    def save_texts(self, texts: Mapping[str, JobTexts]) -> None:
        with Database(self._engine) as db:
            for piece in pieces(sorted(texts, key=int), PIECE):
                save_texts(db, {int(number): texts[number] for number in piece})
            db.commit()

    def without_texts(self, limit: int) -> list[str]:
        wanted = (
            select(JOBS.c.number)
            .where(JOBS.c.texted.is_(False), JOBS.c.left.is_(None))
            .where(JOBS.c.tab.in_([tab.value for tab in JobTab]))
            .order_by(JOBS.c.number.desc())
            .limit(limit)
        )
        with Database(self._readers) as db:
            return list(map(str, db.scalars(wanted)))

    # What accounting says

    def unsettled(self, now: datetime, limit: int) -> list[Job]:
        with Database(self._readers) as db:
            due = (JOBS.c.ask_at <= now,)
            return job_query.jobs_where(db, *due, order=JOBS.c.ask_at, limit=limit)

    def settle(self, ended: Iterable[Job]) -> None:
        with Database(self._engine) as db:
            over = [job for job in ended if job.report.state.over and job.report.submitted]
            for piece in pieces(over, PIECE):
                found = {int(job.id): job for job in piece}
                values = {number: _from_accounting(job) for number, job in found.items()}
                save_rows(db, values, keeps_accounting)
                untold = select(JOBS.c.number).where(
                    JOBS.c.number.in_(list(found)), JOBS.c.texted.is_(False)
                )
                wanted = [n for n in db.scalars(untold) if found[n].texts != JobTexts()]
                save_texts(db, {number: found[number].texts for number in wanted})
            db.commit()

    def postpone(self, ids: Collection[str], now: datetime) -> None:
        with Database(self._engine) as db:
            for piece in pieces(sorted(map(int, ids)), PIECE):
                missing = JOBS.c.number.in_(piece), JOBS.c.left.is_not(None)
                live = JOBS.c.tab != JobTab.ENDED.value
                db.execute(
                    update(JOBS).where(*missing, live, JOBS.c.gone.is_(None)).values(gone=now)
                )
                rows = db.execute(
                    select(JOBS.c.number, JOBS.c.gone, JOBS.c.ended, JOBS.c.tab).where(missing[0])
                ).all()
                over = JobTab.ENDED.value
                later = [
                    {"_number": n, "_at": _next(now, ended if tab == over else gone or now)}
                    for n, gone, ended, tab in rows
                ]
                if later:
                    by_number(db, {"ask_at": bindparam("_at")}, later)
            db.commit()

    def known_until(self) -> datetime | None:
        with Database(self._readers) as db:
            row = db.get(JobHistoryRow, 1)
            return row.known_until if row else None

    def set_known_until(self, moment: datetime) -> None:
        with Database(self._engine) as db:
            db.merge(JobHistoryRow(id=1, known_until=moment))
            db.commit()

    def delete_ended(self, before: datetime) -> int:
        # In any order, so that the index of ends serves.
        over = JOBS.c.tab == JobTab.ENDED.value, JOBS.c.tab_head.in_([True, False])
        old = (*over, JOBS.c.ended < before), (JOBS.c.gone < before,)
        found = select(JOBS.c.number, JOBS.c.array_id).limit(PIECE * 10)
        with Database(self._readers) as db:
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
        with Database(self._readers) as db:
            return job_query.query_page(db, query, now)

    def counts(self, query: JobQuery, now: datetime) -> dict[JobTab, int]:
        with Database(self._readers) as db:
            return job_query.count_tabs(db, query, now)

    def get(self, shown_id: str) -> Job | None:
        with Database(self._readers) as db:
            return job_query.by_shown_id(db, shown_id)

    def get_many(self, ids: Collection[str]) -> list[Job]:
        numbers = [int(one) for one in ids if one.isascii() and one.isdecimal() and len(one) <= 10]
        found: dict[str, Job] = {}
        with Database(self._readers) as db:
            for piece in pieces(numbers, PIECE):
                which = or_(JOBS.c.number.in_(piece), JOBS.c.array_id.in_(piece))
                found |= {job.id: job for job in job_query.jobs_where(db, which)}
        return list(found.values())

    def ahead(self, jobs: Collection[Job]) -> dict[str, int]:
        with Database(self._readers) as db:
            return job_query.ahead(db, jobs)

    def owners(self) -> list[str]:
        with Database(self._readers) as db:
            return job_query.owners(db)

    # One extension at a time

    def claim(self, job_id: str, now: datetime, lease: timedelta) -> bool:
        free = or_(JOBS.c.extending.is_(None), JOBS.c.extending < now - lease)
        return self._set_extending(job_id, free, now)

    def release_claim(self, job_id: str, begun: datetime) -> None:
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


def _from_queue(job: Job, now: datetime) -> Values:
    asked = now + ACCOUNTING_LAG if job.tab is JobTab.ENDED else None
    left = {"left": None, "gone": None, "ask_at": asked, "cancelled_by": None}
    return queue_values(job, now) | left


def _from_accounting(job: Job) -> Values:
    ended = job.report.end or job.report.submitted or datetime.now(UTC)
    told = {"ask_at": None, "gone": None, "cancelled_by": job.report.cancelled_by}
    return queue_values(job, ended) | told
