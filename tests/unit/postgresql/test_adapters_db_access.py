"""The tests of adapters.db.test_access, on PostgreSQL."""

from tests.unit.adapters.db.test_access import *  # noqa: F403
