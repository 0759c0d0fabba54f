"""Presets in the database."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Engine, and_
from sqlalchemy.exc import IntegrityError
from sqlmodel import Session as Database
from sqlmodel import col, delete, select, update

from portal.adapters.db.reencrypt import open_values, seal_preset
from portal.adapters.db.tables import PresetRow
from portal.adapters.encryption import Sealer
from portal.core.interfaces.presets import PresetStore
from portal.core.launch.presets import Preset, SaveResult


class PresetTables(PresetStore):
    """PresetStore over SQLModel."""

    def __init__(self, engine: Engine, sealer: Sealer) -> None:
        self._engine = engine
        self._sealer = sealer
        self._readers = engine.execution_options(read_only=True)

    def all(self, owner: str) -> list[Preset]:
        query = select(PresetRow).where(_of(owner))
        with Database(self._readers) as db:
            return [_preset(row, None) for row in db.exec(query.order_by(col(PresetRow.name)))]

    def get(self, owner: str, name: str) -> Preset | None:
        with Database(self._readers) as db:
            row = db.get(PresetRow, (owner, name))
            return _preset(row, self._sealer) if row else None

    def save(self, owner: str, preset: Preset, replace: bool, most: int) -> SaveResult:
        for _ in range(2):  # again when the name was taken concurrently
            try:
                return self._save(owner, preset, replace, most)
            except IntegrityError:
                continue
        return SaveResult.TAKEN

    def _save(self, owner: str, preset: Preset, replace: bool, most: int) -> SaveResult:
        body = seal_preset(self._sealer, owner, preset.body)
        with Database(self._engine) as db:
            # All of a user's rows are locked, or two new ones could exceed `most` together.
            mine = db.exec(select(PresetRow).where(_of(owner)).with_for_update()).all()
            row = next((row for row in mine if row.name == preset.name), None)
            if row is None and len(mine) >= most:
                return SaveResult.FULL
            if row is not None and not replace:
                return SaveResult.TAKEN
            result = SaveResult.NEW if row is None else SaveResult.REPLACED
            row = row or PresetRow(owner=owner, name=preset.name, request="", saved=preset.saved)
            row.request, row.saved = body, preset.saved
            db.add(row)
            db.commit()
            return result

    def rename(self, owner: str, name: str, to: str) -> SaveResult:
        try:
            with Database(self._engine) as db:
                mine = {row.name for row in db.exec(select(PresetRow).where(_of(owner)))}
                if name not in mine:
                    return SaveResult.MISSING
                if to in mine and to != name:
                    return SaveResult.TAKEN
                done = db.exec(update(PresetRow).where(_is(owner, name)).values(name=to))
                db.commit()
                return SaveResult.RENAMED if done.rowcount else SaveResult.MISSING
        except IntegrityError:  # the name was taken concurrently
            return SaveResult.TAKEN

    def remove(self, owner: str, name: str) -> bool:
        with Database(self._engine) as db:
            done = db.exec(delete(PresetRow).where(_is(owner, name)))
            db.commit()
            return bool(done.rowcount)


def _of(owner: str) -> Any:
    return col(PresetRow.owner) == owner


def _is(owner: str, name: str) -> Any:
    return and_(col(PresetRow.owner) == owner, col(PresetRow.name) == name)


def _preset(row: PresetRow, sealer: Sealer | None) -> Preset:
    body = json.loads(row.request)
    if env := body.get("env"):
        body["env"] = open_values(sealer, row.owner, env) if sealer else dict.fromkeys(env, "")
    return Preset(row.name, body, row.saved)
