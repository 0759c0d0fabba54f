"""What administrators decide, and the journal, in the database."""

from __future__ import annotations

from sqlalchemy import Engine


class RulesTable:
    """RulesStore over SQLModel."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
