"""The tests of store.test_access, on PostgreSQL."""

from tests.unit.store.test_access import *  # noqa: F403
