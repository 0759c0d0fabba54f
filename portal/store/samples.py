"""Sessions' use over time in the database."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime

from sqlalchemy import Connection, Engine, bindparam, delete, func, insert, select, update

from portal.core.session.session import OVER, Facts, State
from portal.core.session_job.samples import MOST, Reading, Sample, add_reading, thin
from portal.store.reading import reading_rows
from portal.store.tables import SampleRow


class SampleStore:
    """Resource usage of sessions over time. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def record(self, session: str, when: Collection[State], facts: Facts, reading: Reading) -> bool:
        """Update a session whose state is one of `when`, and add the reading to its samples.

        False, without a change, for other sessions.
        """
        values = {"_session": session, "_when": list(when), **facts}
        with self._engine.begin() as connection:
            # This locks the row first: concurrent reports of a session wait for each other.
            if not connection.execute(_REPORTED, values).rowcount:
                return False
            _add(connection, session, reading)
            return True

    def samples(self, session: str) -> list[Sample]:
        """A session's samples, oldest first; at most core.session_job.samples.MOST."""
        with reading_rows(self._readers) as connection:
            return _samples(connection, session)

    def forget_samples(self, before: datetime) -> None:
        """Delete the samples of sessions that ended before a time."""
        ended = _SESSIONS.c.state.in_(OVER), _SESSIONS.c.ended < before
        over = select(_SESSIONS.c.id).where(*ended)
        with self._engine.begin() as connection:
            connection.execute(delete(_SAMPLES).where(_SAMPLES.c.session.in_(over)))


# Statements are built once: a report arrives for each session every few seconds.
_TABLES = SampleRow.metadata.tables
_SESSIONS, _SAMPLES = _TABLES["session"], _TABLES["session_sample"]
_REPORTED = update(_SESSIONS).where(
    _SESSIONS.c.id == bindparam("_session"),
    _SESSIONS.c.state.in_(bindparam("_when", expanding=True)),
)
_OF_SESSION = _SAMPLES.c.session == bindparam("_session")
_ALL = select(_SAMPLES).where(_OF_SESSION).order_by(_SAMPLES.c.at)
_NEWEST = select(_SAMPLES).where(_OF_SESSION).order_by(_SAMPLES.c.at.desc()).limit(1)
_MERGED = update(_SAMPLES).where(_OF_SESSION, _SAMPLES.c.at == bindparam("_at"))
_COUNT = select(func.count()).select_from(_SAMPLES).where(_OF_SESSION)


def _add(connection: Connection, session: str, reading: Reading) -> None:
    """Add a reading to the newest sample, or as a new one; thins the samples if they are many."""
    of_session = {"_session": session}
    row = connection.execute(_NEWEST, of_session).mappings().first()
    sample = add_reading(Sample.model_validate(dict(row)) if row else None, reading)
    if row is not None and row["at"] == sample.at:
        values = sample.model_dump(exclude={"at", "seconds"})
        connection.execute(_MERGED, {**of_session, "_at": sample.at, **values})
        return
    connection.execute(insert(_SAMPLES), _values(session, [sample]))
    if connection.execute(_COUNT, of_session).scalar_one() > MOST:
        fewer = thin(_samples(connection, session))
        connection.execute(delete(_SAMPLES).where(_OF_SESSION), of_session)
        connection.execute(insert(_SAMPLES), _values(session, fewer))


def _samples(connection: Connection, session: str) -> list[Sample]:
    rows = connection.execute(_ALL, {"_session": session}).mappings()
    return [Sample.model_validate(dict(row)) for row in rows]


def _values(session: str, samples: Iterable[Sample]) -> list[dict[str, object]]:
    return [{"session": session, **sample.model_dump()} for sample in samples]
