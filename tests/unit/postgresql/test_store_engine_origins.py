"""The tests of store.test_engine_origins, on PostgreSQL."""

from tests.unit.store.test_engine_origins import *  # noqa: F403
