"""The tests of adapters.db.monitoring.test_heartbeats, on PostgreSQL."""

from tests.unit.adapters.db.monitoring.test_heartbeats import *  # noqa: F403
