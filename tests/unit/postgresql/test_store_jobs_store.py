"""The tests of store.jobs.test_store, on PostgreSQL."""

from portal.store.jobs.store import JobStore
from tests.unit.store.jobs.test_store import *  # noqa: F403


def test_they_are_on_postgresql(store: JobStore) -> None:
    assert store._engine.dialect.name == "postgresql"
