"""Shares of storage folders in the database."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Engine, and_, false, func, or_
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.core.files.shares import (
    GROUP,
    MOST_FROM_ONE,
    MOST_RECEIVED,
    USER,
    Access,
    FolderShare,
    Kind,
    ShareKey,
    ShareState,
)
from portal.store.reading import reading
from portal.store.tables import FolderShareRow

_Row = FolderShareRow
_ORDER = (col(_Row.owner), col(_Row.folder), col(_Row.kind).desc(), col(_Row.name))


class ShareStore:
    """Shares of storage folders. Every method is one transaction."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._readers = engine.execution_options(read_only=True)

    def of_owner(self, owner: str, folder: str | None = None) -> list[FolderShare]:
        """A user's shares, by folder, kind and name; of one folder, or all."""
        return self._find(_of(owner, folder))

    def with_user(self, user: str) -> list[FolderShare]:
        """The shares whose recipient is this user, for lists: the first MOST_FROM_ONE of each owner
        and at most MOST_RECEIVED, all owners' first ones before their second ones.

        So only that many other accounts could fill a user's list.
        """
        received = and_(col(_Row.kind) == USER, col(_Row.name) == user)
        nth = func.row_number().over(
            partition_by=_Row.owner, order_by=(col(_Row.created), _Row.folder)
        )
        ranked = select(_Row.owner, _Row.folder, nth.label("nth")).where(received).subquery()
        same = and_(ranked.c.owner == _Row.owner, ranked.c.folder == _Row.folder)
        query = select(_Row).join(ranked, same).where(received, ranked.c.nth <= MOST_FROM_ONE)
        query = query.order_by(ranked.c.nth, col(_Row.created), *_ORDER).limit(MOST_RECEIVED)
        with reading(self._readers) as db:
            return [_share(row) for row in db.exec(query)]

    def of_folders(self, folders: Collection[tuple[str, str]]) -> list[FolderShare]:
        """All shares of these folders, by owner and name."""
        return self._find(or_(false(), *(_of(owner, folder) for owner, folder in folders)))

    def has_groups(self) -> bool:
        """Whether there is a share whose recipient is a group."""
        query = select(_Row.name).where(col(_Row.kind) == GROUP).limit(1)
        with reading(self._readers) as db:
            return db.exec(query).first() is not None

    def with_groups(self, groups: Collection[str]) -> list[FolderShare]:
        """The shares whose recipient is one of these groups."""
        return self._find(and_(col(_Row.kind) == GROUP, col(_Row.name).in_(groups)))

    def get(self, key: ShareKey) -> FolderShare | None:
        """One share."""
        shares = self._find(_is(key))
        return shares[0] if shares else None

    def put(self, share: FolderShare, most: int) -> bool:
        """Store or replace a share.

        False if it is new and its folder already has `most`.
        """
        key = share.key
        with Database(self._engine) as db:
            # All of a folder's rows are locked, or two new ones could exceed `most` together.
            folder = select(_Row).where(_of(key.owner, key.folder)).with_for_update()
            existing = {(row.kind, row.name) for row in db.exec(folder)}
            if (key.kind, key.name) not in existing and len(existing) >= most:
                return False
            db.merge(_row(share))
            db.commit()
            return True

    def set_state(self, key: ShareKey, access: Access, state: ShareState) -> None:
        """Store a share's state, unless its access has changed meanwhile."""
        condition = and_(_is(key), col(_Row.access) == access)
        with Database(self._engine) as db:
            db.exec(update(_Row).where(condition).values(state=state.value))
            db.commit()

    def remove(self, key: ShareKey) -> None:
        """Delete a share."""
        self._delete(_is(key))

    def remove_unchanged(self, share: FolderShare) -> None:
        """Delete a share, unless it has changed since it was read."""
        same = and_(
            _is(share.key),
            col(_Row.access) == share.access,
            col(_Row.state) == share.state.value,
            col(_Row.created) == share.created,
        )
        self._delete(same)

    def copy(self, owner: str, folder: str, to: str, now: datetime) -> list[FolderShare]:
        """Copy the shares of a folder to another name of it; returns those that are new."""
        with Database(self._engine) as db:
            rows = db.exec(select(_Row).where(_of(owner, to)).with_for_update())
            existing = {(row.kind, row.name) for row in rows}
            copies = [
                _Row(**row.model_dump() | {"folder": to, "created": now})
                for row in db.exec(select(_Row).where(_of(owner, folder)))
                if (row.kind, row.name) not in existing
            ]
            shares = [_share(row) for row in copies]
            db.add_all(copies)
            db.commit()
            return shares

    def remove_all(self, owner: str, folder: str) -> None:
        """Delete the shares of a folder."""
        self._delete(_of(owner, folder))

    def _find(self, condition: Any) -> list[FolderShare]:
        with reading(self._readers) as db:
            return [_share(row) for row in db.exec(select(_Row).where(condition).order_by(*_ORDER))]

    def _delete(self, condition: Any) -> None:
        with Database(self._engine) as db:
            db.exec(delete(_Row).where(condition))
            db.commit()


def _of(owner: str, folder: str | None) -> Any:
    mine = col(_Row.owner) == owner
    return mine if folder is None else and_(mine, col(_Row.folder) == folder)


def _is(key: ShareKey) -> Any:
    return and_(_of(key.owner, key.folder), col(_Row.kind) == key.kind, col(_Row.name) == key.name)


def _row(share: FolderShare) -> FolderShareRow:
    return _Row(
        **vars(share.key), access=share.access, state=share.state.value, created=share.created
    )


def _share(row: FolderShareRow) -> FolderShare:
    key = ShareKey(row.owner, row.folder, cast(Kind, row.kind), row.name)
    return FolderShare(key, cast(Access, row.access), row.created, ShareState(row.state))
