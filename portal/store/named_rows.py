"""Rows with the key (owner, name): presets and job templates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from sqlalchemy import Engine, and_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import SQLModel, col, delete, select, update

from portal.core.launch.presets import SaveResult

Row = TypeVar("Row", bound=SQLModel)


class NamedRows(Generic[Row]):
    """Saves, renames and deletes rows of a table with the key (owner, name)."""

    def __init__(self, engine: Engine, table: type[Row]) -> None:
        self._engine = engine
        self._table: Any = table

    def save(
        self, owner: str, name: str, fill: Callable[[Row | None], Row], replace: bool, most: int
    ) -> SaveResult:
        """Store the row that `fill` returns for the row of this name, or for None."""
        for _ in range(2):  # again when the name was taken concurrently
            try:
                return self._save(owner, name, fill, replace, most)
            except IntegrityError:
                continue
        return SaveResult.TAKEN

    def _save(
        self, owner: str, name: str, fill: Callable[[Row | None], Row], replace: bool, most: int
    ) -> SaveResult:
        with Database(self._engine) as db:
            # All of a user's rows are locked, or two new ones could exceed `most` together.
            locked = select(self._table.name).where(self.of(owner)).with_for_update()
            names = set(db.exec(locked))
            if name not in names and len(names) >= most:
                return SaveResult.FULL
            if name in names and not replace:
                return SaveResult.TAKEN
            db.add(fill(db.get(self._table, (owner, name))))
            db.commit()
            return SaveResult.REPLACED if name in names else SaveResult.NEW

    def rename(self, owner: str, name: str, to: str) -> SaveResult:
        """Rename a row."""
        try:
            with Database(self._engine) as db:
                mine = set(db.exec(select(self._table.name).where(self.of(owner))))
                if name not in mine:
                    return SaveResult.MISSING
                if to in mine and to != name:
                    return SaveResult.TAKEN
                result = db.exec(update(self._table).where(self._is(owner, name)).values(name=to))
                db.commit()
                return SaveResult.RENAMED if result.rowcount else SaveResult.MISSING
        except IntegrityError:  # the name was taken concurrently
            return SaveResult.TAKEN

    def remove(self, owner: str, name: str) -> bool:
        """Delete a row; returns whether there was one."""
        with Database(self._engine) as db:
            result = db.exec(delete(self._table).where(self._is(owner, name)))
            db.commit()
            return bool(result.rowcount)

    def of(self, owner: str) -> Any:
        """The condition for all rows of a user."""
        return col(self._table.owner) == owner

    def _is(self, owner: str, name: str) -> Any:
        return and_(self.of(owner), col(self._table.name) == name)
