"""Counts the database transactions of a piece of code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event

from tests.support.fakes import World


@contextmanager
def transactions(world: World) -> Iterator[list[str]]:
    """The transactions that begin meanwhile, each "read" or "write"."""
    begun: list[str] = []

    def note(connection: Any) -> None:
        read_only = connection.get_execution_options().get("read_only", False)
        begun.append("read" if read_only else "write")

    engine = world.engine
    event.listen(engine, "begin", note)
    try:
        yield begun
    finally:
        event.remove(engine, "begin", note)
