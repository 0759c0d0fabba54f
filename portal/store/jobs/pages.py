"""What jobs use and who read their output, in the database."""

from __future__ import annotations

from datetime import datetime

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, update

from portal.core.jobs.output import Reading
from portal.core.jobs.usage import JobUsage
from portal.store.reading import reading
from portal.store.tables import JobReadingRow, JobUsageRow


class JobPageStore:
    """Scripts and outputs of jobs whose page was opened. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def usage(self, job_id: str) -> JobUsage | None:
        """The use when Slurm was last asked."""
        with reading(self._readers) as db:
            row = db.get(JobUsageRow, job_id)
            return _read(row.usage) if row else None

    def claim_usage(self, job_id: str, now: datetime, latest: datetime) -> bool:
        """Whether the caller is to ask Slurm now: nobody else has since `latest`."""
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
        """Store what Slurm told."""
        text = _USAGE.dump_json(usage).decode()
        with Database(self._engine) as db:
            row = db.get(JobUsageRow, job_id) or JobUsageRow(job=job_id, asked=usage.at)
            row.usage = text
            db.add(row)
            db.commit()

    def reading(self, job_id: str) -> Reading | None:
        """The last time that an administrator read the job's output."""
        with reading(self._readers) as db:
            row = db.get(JobReadingRow, job_id)
            return Reading(row.by, row.at) if row else None

    def note_reading(self, job_id: str, reading: Reading, since: datetime) -> bool:
        """Store that an administrator reads it; False if the same one has since that time."""
        known = self.reading(job_id)  # pages poll: most of them need not wait to write
        if known is not None and known.by == reading.by and known.at > since:
            return False
        with Database(self._engine) as db:
            db.merge(JobReadingRow(job=job_id, by=reading.by, at=reading.at))
            db.commit()
        return True

    def forget(self, before: datetime) -> int:
        """Delete what was stored before a time; returns how many jobs' records."""
        with Database(self._engine) as db:
            found = db.exec(delete(JobUsageRow).where(col(JobUsageRow.asked) < before)).rowcount
            found += db.exec(delete(JobReadingRow).where(col(JobReadingRow.at) < before)).rowcount
            db.commit()
            return found


_USAGE = TypeAdapter(JobUsage)


def _read(text: str) -> JobUsage | None:
    try:
        return _USAGE.validate_json(text) if text else None
    except ValidationError:  # of another version of the portal: it is asked for again
        return None
