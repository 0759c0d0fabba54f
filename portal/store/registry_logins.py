"""Logins for registries in the database."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Engine
from sqlmodel import Session as Database
from sqlmodel import col, delete, select

from portal.core.launch.registry_login import RegistryLogin, SavedLogin
from portal.store.encryption import Sealer
from portal.store.reading import reading
from portal.store.reencrypt import login_aad
from portal.store.tables import RegistryLoginRow


class RegistryLoginStore:
    """Registry logins by owner and registry. Every method is one transaction."""

    def __init__(self, engine: Engine, sealer: Sealer) -> None:
        self._engine = engine
        self._sealer = sealer
        self._readers = engine.execution_options(read_only=True)

    def all(self, owner: str) -> list[SavedLogin]:
        """The owner's logins, by registry; never passwords."""
        query = select(RegistryLoginRow).where(col(RegistryLoginRow.owner) == owner)
        with reading(self._readers) as db:
            rows = db.exec(query.order_by(col(RegistryLoginRow.host)))
            return [SavedLogin(row.host, row.user, row.added, row.used) for row in rows]

    def use(self, owner: str, registry: str, now: datetime) -> RegistryLogin | None:
        """Return a login, and store its use; raises Unavailable without the encryption key."""
        with Database(self._engine) as db:
            row = db.get(RegistryLoginRow, (owner, registry))
            if row is None:
                return None
            password = self._sealer.open(row.secret, login_aad(owner, registry))
            login = RegistryLogin(user=row.user, password=password)
            row.used = now
            db.add(row)
            db.commit()
        return login

    def save(self, owner: str, registry: str, login: RegistryLogin, now: datetime) -> bool:
        """Save a login, replacing an earlier one; returns whether it is new."""
        secret = self._sealer.seal(login.password, login_aad(owner, registry))
        saved = RegistryLoginRow(
            owner=owner, host=registry, user=login.user, secret=secret, added=now, used=None
        )
        with Database(self._engine) as db:
            row = db.get(RegistryLoginRow, (owner, registry))
            db.merge(saved)
            db.commit()
        return row is None

    def remove(self, owner: str, registry: str) -> bool:
        """Delete a login; returns whether there was one."""
        conditions = (
            col(RegistryLoginRow.owner) == owner,
            col(RegistryLoginRow.host) == registry,
        )
        with Database(self._engine) as db:
            result = db.exec(delete(RegistryLoginRow).where(*conditions))
            db.commit()
            return bool(result.rowcount)
