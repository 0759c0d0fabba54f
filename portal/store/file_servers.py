"""Users' file servers, and the access to them, in the database.

Access is stored as grants (tables/apps.py) with the label LABEL, so that revoking a login or token
revokes it in the same transaction.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Engine, or_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.apps.access import Grant
from portal.core.files.server import LABEL, FileServer, route_key
from portal.store.access import to_grant
from portal.store.reading import reading
from portal.store.tables import FileServerRow, GrantRow, LoginRow


class FileServerStore:
    """Where file servers run, and who has access to them. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def server(self, owner: str) -> FileServer | None:
        """The user's file server."""
        with reading(self._readers) as db:
            row = db.get(FileServerRow, owner)
            return _server(row) if row else None

    def claim_start(self, owner: str, dead: str, now: datetime, until: datetime) -> bool:
        """Claim the start of a user's server, which replaces the one with the id `dead` ("": none).

        False if another process has started one, or has a claim that has not expired.
        """
        starting = col(FileServerRow.starting)
        conditions = (
            col(FileServerRow.owner) == owner,
            col(FileServerRow.id) == dead,
            or_(starting.is_(None), starting < now),
        )
        try:
            with Database(self._engine) as db:
                if db.get(FileServerRow, owner) is None:
                    db.add(FileServerRow(owner=owner, id=dead))
                    db.flush()
                result = db.exec(update(FileServerRow).where(*conditions).values(starting=until))
                db.commit()
                return bool(result.rowcount)
        except IntegrityError:  # another process has added the row at this moment
            return False

    def save(self, server: FileServer) -> None:
        """Store a started server; ends the claim."""
        with Database(self._engine) as db:
            db.merge(FileServerRow(**vars(server), starting=None, cleaned=None))
            db.commit()

    def give_up_start(self, owner: str) -> None:
        """End the claim without a server."""
        with Database(self._engine) as db:
            condition = col(FileServerRow.owner) == owner
            db.exec(update(FileServerRow).where(condition).values(starting=None))
            db.commit()

    def uncleaned(self, before: datetime, most: int) -> list[str]:
        """Users whose server was last started before a time, and was not cleaned up since."""
        query = select(FileServerRow.owner).where(
            col(FileServerRow.started) < before, col(FileServerRow.cleaned).is_(None)
        )
        with reading(self._readers) as db:
            return list(db.exec(query.order_by(col(FileServerRow.started)).limit(most)))

    def set_cleaned(self, owner: str, now: datetime) -> None:
        """Store that a user's server has been cleaned up since its last start."""
        with Database(self._engine) as db:
            condition = col(FileServerRow.owner) == owner
            db.exec(update(FileServerRow).where(condition).values(cleaned=now))
            db.commit()

    def admit(self, grant: Grant, most: int) -> list[str]:
        """Give a cookie or token access to its owner's server, as long as its login lasts.

        The user keeps the newest `most`; returns the hashes of those that were dropped.
        """
        others = select(GrantRow).where(
            col(GrantRow.label) == LABEL,
            col(GrantRow.user) == grant.user,
            col(GrantRow.cookie_hash) != grant.cookie_hash,
        )
        with Database(self._engine) as db:
            db.merge(GrantRow(**vars(grant)))
            oldest = list(db.exec(others.order_by(col(GrantRow.created).desc()).offset(most - 1)))
            dropped = [row.cookie_hash for row in oldest]
            for row in oldest:
                db.delete(row)
            db.commit()
        return dropped

    def grant(self, secret_hash: str) -> Grant | None:
        """The access of a cookie or token; None if it has none."""
        with reading(self._readers) as db:
            row = db.get(GrantRow, secret_hash)
            return to_grant(row) if row is not None and row.label == LABEL else None

    def routes(
        self, now: datetime, owner: str | None = None, keys: Collection[str] | None = None
    ) -> dict[str, str]:
        """Targets of the routes that should exist, by key: of one user, these, or all."""
        live = (col(LoginRow.expires) >= now) & col(LoginRow.revoked).is_(None)
        query = (
            select(col(GrantRow.cookie_hash), col(GrantRow.app), FileServerRow)
            .join(LoginRow, col(LoginRow.hash) == col(GrantRow.login))
            .join(FileServerRow, col(FileServerRow.owner) == col(GrantRow.user))
            .where(col(GrantRow.label) == LABEL, live, col(LoginRow.user) == col(GrantRow.user))
        )
        if owner is not None:
            query = query.where(col(GrantRow.user) == owner)
        if keys is not None:
            hashes = [key.partition(".")[2] for key in keys if key.startswith(LABEL)]
            query = query.where(col(GrantRow.cookie_hash).in_(hashes))
        with reading(self._readers) as db:
            admitted = [(hash, kind, _server(row)) for hash, kind, row in db.exec(query)]
        return {
            route_key(hash): server.target(kind)
            for hash, kind, server in admitted
            if server is not None
        }

    def expire(self, now: datetime) -> None:
        """Delete access whose login has expired or was revoked."""
        live = select(LoginRow.hash).where(
            (col(LoginRow.expires) >= now) & col(LoginRow.revoked).is_(None)
        )
        with Database(self._engine) as db:
            conditions = col(GrantRow.label) == LABEL, col(GrantRow.login).not_in(live)
            db.exec(delete(GrantRow).where(*conditions))
            db.commit()


def _server(row: FileServerRow) -> FileServer | None:
    if not row.port or row.started is None:
        return None
    return FileServer(row.owner, row.id, row.address, row.port, row.started)
