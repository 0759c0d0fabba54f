"""Presets in the database."""

from __future__ import annotations

from sqlalchemy import Engine


class PresetTable:
    """PresetStore over SQLModel."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
