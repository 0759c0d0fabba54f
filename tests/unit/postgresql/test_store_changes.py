"""The tests of store.test_changes, on PostgreSQL."""

from tests.unit.store.test_changes import *  # noqa: F403
