"""The tests of adapters.db.test_engine_origins, on PostgreSQL."""

from tests.unit.adapters.db.test_engine_origins import *  # noqa: F403
