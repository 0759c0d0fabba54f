"""The tests of adapters.db.jobs.test_store, on PostgreSQL."""

from tests.unit.adapters.db.jobs.test_store import *  # noqa: F403
