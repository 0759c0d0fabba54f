"""The tests of adapters.db.test_sessions, on PostgreSQL."""

from tests.unit.adapters.db.test_sessions import *  # noqa: F403
