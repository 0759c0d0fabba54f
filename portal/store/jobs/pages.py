"""Usage of jobs, and readings of their output by administrators, in the database."""

from __future__ import annotations

from datetime import datetime

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, update

from portal.core.jobs.job_usage import JobUsage
from portal.core.jobs.output import Reading
from portal.store.reading import reading
from portal.store.tables import JobReadingRow, JobUsageRow


class JobPageStore:
    """Usage and readings of jobs whose page was opened. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def usage(self, job_id: str) -> JobUsage | None:
        """A job's usage as last read from Slurm."""
        with reading(self._readers) as db:
            row = db.get(JobUsageRow, job_id)
            return _read(row.usage) if row else None

    def claim_usage(self, job_id: str, now: datetime, latest: datetime) -> bool:
        """Claim the next reading from Slurm; False if there has been one since `latest`."""
        mine = col(JobUsageRow.job) == job_id
        with Database(self._engine) as db:
            free = mine & (col(JobUsageRow.asked) <= latest)
            if db.exec(update(JobUsageRow).where(free).values(asked=now)).rowcount:
                db.commit()
                return True
            if db.get(JobUsageRow, job_id) is not None:
                return False
            db.add(JobUsageRow(job=job_id, asked=now))
            try:
                db.commit()
            except IntegrityError:  # another process was first
                return False
            return True

    def save_usage(self, job_id: str, usage: JobUsage) -> None:
        """Store a job's usage."""
        text = _USAGE.dump_json(usage).decode()
        with Database(self._engine) as db:
            row = db.get(JobUsageRow, job_id) or JobUsageRow(job=job_id, asked=usage.at)
            row.usage = text
            db.add(row)
            db.commit()

    def reading(self, job_id: str) -> Reading | None:
        """The last reading of the job's output by an administrator."""
        with reading(self._readers) as db:
            row = db.get(JobReadingRow, job_id)
            return Reading(row.by, row.at) if row else None

    def note_reading(self, job_id: str, reading: Reading, since: datetime) -> bool:
        """Store a reading; False if the same administrator has one since that time."""
        last = self.reading(job_id)  # pages poll: most of them need not wait to write
        if last is not None and last.by == reading.by and last.at > since:
            return False
        with Database(self._engine) as db:
            db.merge(JobReadingRow(job=job_id, by=reading.by, at=reading.at))
            db.commit()
        return True

    def forget(self, before: datetime) -> int:
        """Delete records from before a time; returns their number."""
        with Database(self._engine) as db:
            count = db.exec(delete(JobUsageRow).where(col(JobUsageRow.asked) < before)).rowcount
            count += db.exec(delete(JobReadingRow).where(col(JobReadingRow.at) < before)).rowcount
            db.commit()
            return count


_USAGE = TypeAdapter(JobUsage)


def _read(text: str) -> JobUsage | None:
    try:
        return _USAGE.validate_json(text) if text else None
    except ValidationError:  # stored by another version of the portal; it will be read again
        return None
