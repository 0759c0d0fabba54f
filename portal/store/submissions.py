"""Jobs that were submitted through the portal, in the database."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from sqlalchemy import Engine, and_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.jobs.compose.drafts import Submission
from portal.errors import Conflict
from portal.store.reading import reading
from portal.store.tables import SubmissionRow


class SubmissionStore:
    """Submitted batch jobs by idempotency key. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def claim(self, submission: Submission) -> Submission | None:
        """Store a submission before it is sent; returns the earlier one with its key, if any."""
        try:
            with Database(self._engine) as db:
                db.add(_row(submission))
                db.commit()
                return None
        except IntegrityError:
            return self._earlier(submission.owner, submission.key)

    def _earlier(self, owner: str, key: str) -> Submission:
        with reading(self._readers) as db:
            row = db.get(SubmissionRow, (owner, key))
            if row is None:
                raise Conflict("A submission with this key was just refused. Use a new key.")
            return _submission(row)

    def sent(self, owner: str, key: str, job_id: str) -> None:
        """Store the job's number."""
        with Database(self._engine) as db:
            db.exec(update(SubmissionRow).where(_is(owner, key)).values(job_id=job_id))
            db.commit()

    def release(self, owner: str, key: str) -> None:
        """Delete a submission that was refused, so that its key can be used again."""
        with Database(self._engine) as db:
            db.exec(delete(SubmissionRow).where(_is(owner, key)))
            db.commit()

    def of_job(self, owner: str, job_id: str) -> Submission | None:
        """The submission of a user's job, if it is still stored."""
        query = (
            select(SubmissionRow)
            .where(col(SubmissionRow.owner) == owner, col(SubmissionRow.job_id) == job_id)
            .order_by(col(SubmissionRow.created).desc())  # Slurm reuses numbers after MaxJobId
        )
        with reading(self._readers) as db:
            row = db.exec(query).first()
            return _submission(row) if row else None

    def delete(self, owner: str, before: datetime, most: int) -> None:
        """Delete a user's submissions from before a time, and all but the newest `most` scripts."""
        mine = col(SubmissionRow.owner) == owner
        with_script = select(SubmissionRow.created).where(
            mine, col(SubmissionRow.request).is_not(None)
        )
        last = with_script.order_by(col(SubmissionRow.created).desc()).offset(most).limit(1)
        with Database(self._engine) as db:
            db.exec(delete(SubmissionRow).where(mine, col(SubmissionRow.created) < before))
            oldest = db.exec(last).first()
            if oldest is not None:
                condition = and_(mine, col(SubmissionRow.created) <= oldest)
                db.exec(update(SubmissionRow).where(condition).values(request=None))
            db.commit()


def _is(owner: str, key: str) -> Any:
    return and_(col(SubmissionRow.owner) == owner, col(SubmissionRow.key) == key)


def _row(submission: Submission) -> SubmissionRow:
    return SubmissionRow(
        owner=submission.owner,
        key=submission.key,
        fingerprint=submission.fingerprint,
        job_id=submission.job_id,
        request=json.dumps(submission.body),
        created=submission.created,
    )


def _submission(row: SubmissionRow) -> Submission:
    body = json.loads(row.request) if row.request else {}
    return Submission(row.owner, row.key, row.fingerprint, row.created, body, row.job_id)
