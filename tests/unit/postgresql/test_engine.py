"""The engine on PostgreSQL: which failures are told as what, and what survives a restart."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.pool import QueuePool

from portal.errors import DatabaseUnavailable
from portal.store.engine import open_database
from tests.support.postgresql import PostgreSQL


def ask(engine: Engine) -> int:
    with engine.begin() as connection:
        return int(connection.execute(text("SELECT 1")).scalar() or 0)


def test_a_restart_of_the_server_fails_no_later_request(postgresql: PostgreSQL, url: str) -> None:
    """Connections that the pool has kept are replaced unnoticed."""
    engine = open_database(url)
    with engine.connect(), engine.connect():  # two connections in the pool
        pass
    assert ask(engine) == 1
    postgresql.stop()
    try:
        with pytest.raises(DatabaseUnavailable):
            ask(engine)
    finally:
        postgresql.start()
    assert [ask(engine), ask(engine), ask(engine)] == [1, 1, 1]
    with engine.connect() as kept:
        backend = kept.execute(text("SELECT pg_backend_pid()")).scalar()
    killer = open_database(url)
    with killer.begin() as connection:
        connection.execute(text(f"SELECT pg_terminate_backend({backend})"))
    killer.dispose()
    assert ask(engine) == 1
    engine.dispose()


def test_waiting_for_a_connection_ends(url: str) -> None:
    engine = open_database(url)
    pool = engine.pool
    assert isinstance(pool, QueuePool)
    pool._timeout = 0
    with ExitStack() as stack:
        for _ in range(15):
            stack.enter_context(engine.connect())
        with pytest.raises(DatabaseUnavailable):
            engine.connect()
    engine.dispose()
