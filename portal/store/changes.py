"""Counts of changes in the database."""

from __future__ import annotations

from sqlalchemy import Engine, bindparam, func, select
from sqlmodel import col

from portal.core.changes import EVERYBODY, ChangeNumbers
from portal.store.tables.changes import LIMITS, OF_ALL, PERSON, SITE, USE, ChangeCountRow


class ChangeStore:
    """Counts of changes, which triggers keep. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._readers = engine.execution_options(read_only=True)

    def numbers(self, person: str) -> ChangeNumbers:
        """The counts for a user's name, or for EVERYBODY."""
        with self._readers.connect() as connection:
            rows: dict[str, int] = dict(connection.execute(_OF_ALL).all())
            if person == EVERYBODY:
                count = connection.execute(_OF_EVERYBODY).scalar()
            else:
                count = connection.execute(_OF_PERSON, {"scope": PERSON + person}).scalar()
        use = rows.get(USE, 0) + rows.get(LIMITS, 0)
        return ChangeNumbers(int(count or 0), rows.get(SITE, 0), use)


_SCOPE, _NUMBER = col(ChangeCountRow.scope), col(ChangeCountRow.number)
_OF_ALL = select(_SCOPE, _NUMBER).where(_SCOPE.in_(OF_ALL))
_OF_PERSON = select(_NUMBER).where(bindparam("scope") == _SCOPE)
_OF_EVERYBODY = select(func.sum(_NUMBER)).where(_SCOPE.not_in(OF_ALL))
