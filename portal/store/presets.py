"""Presets in the database."""

from __future__ import annotations

import json

from sqlalchemy import Engine
from sqlmodel import col, select

from portal.core.launch.presets import Preset, SaveResult
from portal.store.encryption import Sealer
from portal.store.named_rows import NamedRows
from portal.store.reading import reading
from portal.store.reencrypt import open_values, seal_preset
from portal.store.tables import PresetRow


class PresetStore:
    """Presets by owner and name. Every method is one transaction."""

    def __init__(self, engine: Engine, sealer: Sealer) -> None:
        self._sealer = sealer
        self._readers = engine.execution_options(read_only=True)
        self._rows = NamedRows(engine, PresetRow)

    def all(self, owner: str) -> list[Preset]:
        """A user's presets, by name, without the values of their variables."""
        query = select(PresetRow).where(self._rows.of(owner))
        with reading(self._readers) as db:
            return [_preset(row, None) for row in db.exec(query.order_by(col(PresetRow.name)))]

    def get(self, owner: str, name: str) -> Preset | None:
        """One preset; raises Unavailable if the key that encrypts its values is missing."""
        with reading(self._readers) as db:
            row = db.get(PresetRow, (owner, name))
            return _preset(row, self._sealer) if row else None

    def save(self, owner: str, preset: Preset, replace: bool, most: int) -> SaveResult:
        """Save a preset, unless its name is taken or the owner already has `most`."""
        body = seal_preset(self._sealer, owner, preset.body)

        def fill(row: PresetRow | None) -> PresetRow:
            row = row or PresetRow(owner=owner, name=preset.name, request="", saved=preset.saved)
            row.request, row.saved = body, preset.saved
            return row

        return self._rows.save(owner, preset.name, fill, replace, most)

    def rename(self, owner: str, name: str, to: str) -> SaveResult:
        """Rename a preset, unless the new name is taken."""
        return self._rows.rename(owner, name, to)

    def remove(self, owner: str, name: str) -> bool:
        """Delete a preset; returns whether there was one."""
        return self._rows.remove(owner, name)


def _preset(row: PresetRow, sealer: Sealer | None) -> Preset:
    body = json.loads(row.request)
    if env := body.get("env"):
        body["env"] = open_values(sealer, row.owner, env) if sealer else dict.fromkeys(env, "")
    return Preset(row.name, body, row.saved)
