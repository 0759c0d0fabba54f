"""The tests of store.jobs.test_store, on PostgreSQL."""

from tests.unit.store.jobs.test_store import *  # noqa: F403
