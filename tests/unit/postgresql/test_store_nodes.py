"""The tests of store.test_nodes, on PostgreSQL."""

from tests.unit.store.test_nodes import *  # noqa: F403
