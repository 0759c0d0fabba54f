"""Tokens of services in the database."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Engine
from sqlmodel import Session as Database
from sqlmodel import col, delete, select

from portal.core.auth.service_tokens import ServiceToken
from portal.store.reading import reading
from portal.store.tables import ServiceTokenRow, ServiceUseRow


class ServiceTokenStore:
    """API tokens of services. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def add(self, token: ServiceToken) -> None:
        """Store a token."""
        values: dict[str, Any] = vars(token) | {"groups": list(token.groups)}
        with Database(self._engine) as db:
            db.add(ServiceTokenRow(**values))
            db.commit()

    def find(self, hash: str, now: datetime) -> ServiceToken | None:
        """The token with this hash, unless it has expired."""
        with reading(self._readers) as db:
            row = db.get(ServiceTokenRow, hash)
            return None if row is None or row.expires < now else _token(row)

    def all(self) -> list[ServiceToken]:
        """All tokens, also expired ones, by name."""
        query = select(ServiceTokenRow).order_by(col(ServiceTokenRow.name), col(ServiceTokenRow.id))
        with reading(self._readers) as db:
            return [_token(row) for row in db.exec(query)]

    def remove(self, id: str) -> ServiceToken | None:
        """Delete a token and return it; None if there is none."""
        with Database(self._engine) as db:
            row = db.exec(select(ServiceTokenRow).where(col(ServiceTokenRow.id) == id)).first()
            if row is None:
                return None
            token = _token(row)
            db.exec(delete(ServiceUseRow).where(col(ServiceUseRow.token) == id))
            db.delete(row)
            db.commit()
            return token

    def note_use(self, id: str, user: str, now: datetime, since: datetime) -> bool:
        """Store a use for a user; False if one since `since` is stored already."""
        with Database(self._engine) as db:
            row = db.get(ServiceUseRow, (id, user))
            if row is not None and row.used > since:
                return False
            db.merge(ServiceUseRow(token=id, user=user, used=now))
            token = db.exec(select(ServiceTokenRow).where(col(ServiceTokenRow.id) == id)).first()
            if token is not None:
                token.used = now
            db.commit()
            return True


def _token(row: ServiceTokenRow) -> ServiceToken:
    return ServiceToken(**row.model_dump(exclude={"groups"}), groups=tuple(row.groups))
