"""The tests of store.jobs.test_merge, on PostgreSQL."""

from tests.unit.store.jobs.test_merge import *  # noqa: F403
