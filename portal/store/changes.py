"""Counts of changes in the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Engine, bindparam, func, select, text
from sqlmodel import col

from portal.core.changes import EVERYBODY, ChangeNumbers
from portal.core.cluster.usage import SlurmStatus
from portal.core.monitoring import WORKER
from portal.core.session.status import silent_parts
from portal.store.tables import ClusterRow, HeartbeatRow
from portal.store.tables.changes import (
    LIMITS,
    OF_ALL,
    PERSON,
    SITE,
    USE,
    ChangeCountRow,
    count_statement,
)


class ChangeStore:
    """Counts of changes, which triggers keep. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def numbers(self, person: str, now: datetime) -> ChangeNumbers:
        """The counts for a user's name, or for EVERYBODY."""
        with self._readers.connect() as connection:
            if person == EVERYBODY:
                row = connection.execute(_OF_EVERYBODY).one()
            else:
                row = connection.execute(_OF_PERSON, {"scope": PERSON + person}).one()
        own, site, use, limits, answered, worker_seen = row
        silent = silent_parts(SlurmStatus(answered, None, worker_seen=worker_seen), now)
        return ChangeNumbers(int(own or 0), site or 0, (use or 0) + (limits or 0), silent)

    def count(self, person: str) -> None:
        """Count a change of what pages show of a user that no trigger counts."""
        statement = text(count_statement("VALUES (:scope, 1)"))
        with self._engine.begin() as connection:
            connection.execute(statement, {"scope": PERSON + person})


_SCOPE, _NUMBER = col(ChangeCountRow.scope), col(ChangeCountRow.number)


def _of(scope: Any) -> Any:
    return select(_NUMBER).where(scope == _SCOPE).scalar_subquery()


_OF_ALL = (
    *map(_of, (SITE, USE, LIMITS)),
    select(col(ClusterRow.answered)).where(col(ClusterRow.id) == 1).scalar_subquery(),
    select(col(HeartbeatRow.beaten)).where(col(HeartbeatRow.name) == WORKER).scalar_subquery(),
)
_OF_PERSON = select(_of(bindparam("scope")), *_OF_ALL)
_OF_EVERYBODY = select(
    select(func.sum(_NUMBER)).where(_SCOPE.not_in(OF_ALL)).scalar_subquery(), *_OF_ALL
)
