"""The tests of store.jobs.test_old, on PostgreSQL."""

from portal.store.jobs.store import JobStore
from tests.support.job_store import NOW
from tests.unit.store.jobs.test_old import *  # noqa: F403


def test_its_size_is_known(store: JobStore) -> None:
    size = store.size(NOW)
    assert (size.rows, size.ended_in_a_day) == (0, 0)
    assert size.database_bytes > 1_000_000
