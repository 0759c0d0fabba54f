"""The tests of store.jobs.test_query_searched, on PostgreSQL."""

from tests.unit.store.jobs.test_query_searched import *  # noqa: F403
