"""The tests of store.test_sessions, on PostgreSQL."""

from tests.unit.store.test_sessions import *  # noqa: F403
