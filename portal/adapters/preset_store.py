"""Presets in the database."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Engine, and_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.adapters.sealed import Sealer
from portal.adapters.sealing import open_values, seal_preset
from portal.adapters.tables import PresetRow
from portal.core.preset import Preset


class PresetTable:
    """PresetStore over SQLModel."""

    def __init__(self, engine: Engine, sealer: Sealer) -> None:
        self._engine = engine
        self._sealer = sealer
        self._readers = engine.execution_options(read_only=True)

    def all(self, owner: str) -> list[Preset]:
        """Somebody's presets, by name, without the values of their variables."""
        query = select(PresetRow).where(col(PresetRow.owner) == owner)
        with Database(self._readers) as db:
            return [_preset(row, None) for row in db.exec(query.order_by(col(PresetRow.name)))]

    def get(self, owner: str, name: str) -> Preset | None:
        """One preset; raises Unavailable when the key of its values is missing."""
        with Database(self._readers) as db:
            row = db.get(PresetRow, (owner, name))
            return _preset(row, self._sealer) if row else None

    def save(self, owner: str, preset: Preset, replace: bool) -> bool:
        """Keep it; False when there is one of this name that is not to be replaced."""
        body = seal_preset(self._sealer, owner, preset.body)
        with Database(self._engine) as db:
            row = db.get(PresetRow, (owner, preset.name))
            if row is not None and not replace:
                return False
            row = row or PresetRow(owner=owner, name=preset.name, request="", saved=preset.saved)
            row.request, row.saved = body, preset.saved
            db.add(row)
            return _committed(db)

    def rename(self, owner: str, name: str, to: str) -> bool:
        """Give it another name; False when that one is taken."""
        with Database(self._engine) as db:
            if db.get(PresetRow, (owner, to)):
                return False
            db.exec(update(PresetRow).where(_is(owner, name)).values(name=to))
            return _committed(db)

    def remove(self, owner: str, name: str) -> bool:
        """Forget it; whether there was one."""
        with Database(self._engine) as db:
            done = db.exec(delete(PresetRow).where(_is(owner, name)))
            db.commit()
            return bool(done.rowcount)


def _committed(db: Database) -> bool:
    try:
        db.commit()
    except IntegrityError:  # somebody took the name in this very moment
        return False
    return True


def _is(owner: str, name: str) -> Any:
    return and_(col(PresetRow.owner) == owner, col(PresetRow.name) == name)


def _preset(row: PresetRow, sealer: Sealer | None) -> Preset:
    body = json.loads(row.request)
    if env := body.get("env"):
        body["env"] = open_values(sealer, row.owner, env) if sealer else dict.fromkeys(env, "")
    return Preset(row.name, body, row.saved)
