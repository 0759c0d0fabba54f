"""One snapshot of the database for all reads of a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from sqlalchemy import Connection, Engine
from sqlmodel import Session as Database

_snapshot: ContextVar[Database | None] = ContextVar("snapshot", default=None)
"""The transaction that all reads of this request share."""


@contextmanager
def snapshot(engine: Engine) -> Iterator[None]:
    """All reads inside share one transaction, and see one state of the database.

    The block must not wait for other systems: PostgreSQL would end the transaction. Its reads do
    not see its own writes.
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
    """A connection for reading: the snapshot's, else one with its own transaction."""
    shared = _shared(readers)
    if shared is not None:
        yield shared
        return
    with Database(readers) as db:
        yield db


@contextmanager
def reading_rows(readers: Engine) -> Iterator[Connection]:
    """The same without the ORM, which costs as much as a small query."""
    shared = _shared(readers)
    if shared is not None:
        yield shared.connection()
        return
    with readers.connect() as connection:
        yield connection


def _shared(readers: Engine) -> Database | None:
    shared = _snapshot.get()
    return shared if shared is not None and shared.get_bind().engine.pool is readers.pool else None
