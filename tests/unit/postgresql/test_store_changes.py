"""The tests of store.test_changes, on PostgreSQL."""

from sqlalchemy import Connection, text

from portal.store.tables.changes import install_triggers
from tests.support.fakes import World
from tests.unit.store.test_changes import *  # noqa: F403 - the tests

_TRIGGERS = text("SELECT tgname FROM pg_trigger WHERE tgname LIKE 'count\\_%'")


def _triggers(connection: Connection) -> set[str]:
    return set(connection.execute(_TRIGGERS).scalars())


def test_a_host_that_starts_does_not_wait_for_readers(world: World) -> None:
    """`slipway init` is repeated at each start, while pages of another host are being read."""
    readers = world.engine.execution_options(read_only=True)
    with readers.connect() as reading, world.engine.begin() as starting:
        reading.execute(text("SELECT count(*) FROM session, job, app, login, cluster"))
        starting.execute(text("SET LOCAL lock_timeout = '1s'"))
        install_triggers(starting)


def test_a_trigger_of_another_definition_is_replaced(world: World) -> None:
    with world.engine.begin() as connection:
        before = _triggers(connection)
        name = min(name for name in before if name.startswith("count_app_insert"))
        connection.execute(text(f"ALTER TRIGGER {name} ON app RENAME TO count_app_insert_old"))
        install_triggers(connection)
        assert _triggers(connection) == before
