"""The tests of store.test_logins, on PostgreSQL."""

from tests.unit.store.test_logins import *  # noqa: F403
