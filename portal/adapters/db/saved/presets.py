"""Presets in the database."""

from __future__ import annotations

import json

from sqlalchemy import Engine
from sqlmodel import col, select

from portal.adapters.db.reading import reading
from portal.adapters.db.reencrypt import open_values, seal_preset
from portal.adapters.db.saved.named_rows import NamedRows
from portal.adapters.db.tables import PresetRow
from portal.adapters.encryption import Sealer
from portal.core.interfaces.presets import PresetStore
from portal.core.launch.presets import Preset, SaveResult


class PresetTables(PresetStore):
    """PresetStore over SQLModel."""

    def __init__(self, engine: Engine, sealer: Sealer) -> None:
        self._sealer = sealer
        self._readers = engine.execution_options(read_only=True)
        self._rows = NamedRows(engine, PresetRow)

    def all(self, owner: str) -> list[Preset]:
        query = select(PresetRow).where(self._rows.of(owner))
        with reading(self._readers) as db:
            return [_preset(row, None) for row in db.exec(query.order_by(col(PresetRow.name)))]

    def get(self, owner: str, name: str) -> Preset | None:
        with reading(self._readers) as db:
            row = db.get(PresetRow, (owner, name))
            return _preset(row, self._sealer) if row else None

    def save(self, owner: str, preset: Preset, replace: bool, most: int) -> SaveResult:
        body = seal_preset(self._sealer, owner, preset.body)

        def fill(row: PresetRow | None) -> PresetRow:
            row = row or PresetRow(owner=owner, name=preset.name, request="", saved=preset.saved)
            row.request, row.saved = body, preset.saved
            return row

        return self._rows.save(owner, preset.name, fill, replace, most)

    def rename(self, owner: str, name: str, to: str) -> SaveResult:
        return self._rows.rename(owner, name, to)

    def remove(self, owner: str, name: str) -> bool:
        return self._rows.remove(owner, name)


def _preset(row: PresetRow, sealer: Sealer | None) -> Preset:
    body = json.loads(row.request)
    if env := body.get("env"):
        body["env"] = open_values(sealer, row.owner, env) if sealer else dict.fromkeys(env, "")
    return Preset(row.name, body, row.saved)
