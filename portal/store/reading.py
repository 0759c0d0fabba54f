"""Reads of one request in one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy import Engine
from sqlmodel import Session as Database

_snapshot: ContextVar[Database | None] = ContextVar("snapshot", default=None)
"""The snapshot of this request."""


@contextmanager
def snapshot(engine: Engine) -> Iterator[None]:
    """All that is read inside sees one state of the database, in one transaction.

    It must not contain anything that waits for other systems: on PostgreSQL the transaction would
    be ended. What is written inside is not seen by later reads.
    """
    if _snapshot.get() is not None:
        yield
        return
    with Database(engine.execution_options(read_only=True)) as db:
        token = _snapshot.set(db)
        try:
            yield
        finally:
            _snapshot.reset(token)


@contextmanager
def reading(readers: Engine) -> Iterator[Database]:
    """A connection for reading: that of the snapshot, else one with its own transaction."""
    shared = _snapshot.get()
    if shared is not None and shared.get_bind().engine.pool is readers.pool:
        yield shared
        return
    with Database(readers) as db:
        yield db
