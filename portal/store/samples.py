"""Sessions' use over time in the database."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Engine, func
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.session.session import OVER, Facts, State
from portal.core.session_job.samples import MOST, Reading, Sample, add_reading, thin
from portal.store.reading import reading
from portal.store.tables import SampleRow, SessionRow


class SampleStore:
    """Resource usage of sessions over time. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def record(self, session: str, when: Collection[State], facts: Facts, reading: Reading) -> bool:
        """Update a session whose state is one of `when`, and add the reading to its samples.

        False, without a change, for other sessions.
        """
        conditions = col(SessionRow.id) == session, col(SessionRow.state).in_(when)
        with Database(self._engine) as db:
            # This locks the row first: concurrent reports of a session wait for each other.
            if not db.exec(update(SessionRow).where(*conditions).values(**facts)).rowcount:
                return False
            _add(db, session, reading)
            db.commit()
            return True

    def samples(self, session: str) -> list[Sample]:
        """A session's samples, oldest first; at most core.session_job.samples.MOST."""
        with reading(self._readers) as db:
            return _samples(db, session)

    def forget_samples(self, before: datetime) -> None:
        """Delete the samples of sessions that ended before a time."""
        over = select(SessionRow.id).where(
            col(SessionRow.state).in_(OVER), col(SessionRow.ended) < before
        )
        with Database(self._engine) as db:
            db.exec(delete(SampleRow).where(col(SampleRow.session).in_(over)))
            db.commit()


def _add(db: Database, session: str, reading: Reading) -> None:
    """Add a reading to the newest sample, or as a new one; thins the samples if they are many."""
    newest = select(SampleRow).where(SampleRow.session == session)
    row = db.exec(newest.order_by(col(SampleRow.at).desc()).limit(1)).first()
    sample = add_reading(Sample.model_validate(row) if row else None, reading)
    if row is not None and row.at == sample.at:
        row.sqlmodel_update(sample.model_dump())
        return
    db.add(_row(session, sample))
    db.flush()
    count = select(func.count()).where(SampleRow.session == session)
    if db.exec(count).one() > MOST:
        fewer = thin(_samples(db, session))
        db.exec(delete(SampleRow).where(col(SampleRow.session) == session))
        db.add_all([_row(session, kept_sample) for kept_sample in fewer])


def _samples(db: Database, session: str) -> list[Sample]:
    rows = db.exec(
        select(SampleRow).where(SampleRow.session == session).order_by(col(SampleRow.at))
    )
    return [Sample.model_validate(row) for row in rows]


def _row(session: str, sample: Sample) -> SampleRow:
    return SampleRow(session=session, **sample.model_dump())
