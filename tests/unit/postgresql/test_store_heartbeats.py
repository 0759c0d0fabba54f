"""The tests of store.test_heartbeats, on PostgreSQL."""

from tests.unit.store.test_heartbeats import *  # noqa: F403
