"""The tests of store.test_reading, on PostgreSQL."""

from tests.unit.store.test_reading import *  # noqa: F403
