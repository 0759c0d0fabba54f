"""Which jobs a list of very many searches, sorts and counts."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import JobTab
from portal.core.jobs.query import JobPage, JobQuery, JobSort
from portal.store.jobs import query as job_query
from portal.store.jobs.store import JobStore
from tests.support.job_store import NOW, ended_job, migrated_store, queued_job


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobStore:
    """A store with five ended jobs, of which lists search the newest three."""
    monkeypatch.setattr(job_query, "MAX_SEARCHED", 3)
    store = migrated_store(tmp_path)
    store.settle(
        ended_job(
            number,
            JobState.FAILED,
            submitted=NOW - timedelta(days=number),
            end=NOW + timedelta(hours=number),
            cpus=number,
        )
        for number in range(1, 6)
    )
    return store


def ids(page: JobPage) -> str:
    return "".join(row.job.id for row in page.rows)


@pytest.mark.parametrize("owner", [None, "alice"])
@pytest.mark.parametrize("tab", [None, JobTab.ENDED])
def test_of_many_ended_jobs_the_newest_are_searched_and_sorted(
    ended: JobStore, owner: str | None, tab: JobTab | None
) -> None:
    query = JobQuery(state=tab, owner=owner, sort=JobSort.MOST_CPUS)
    page = ended.query(query, NOW)
    assert ids(page) == "4321"
    assert page.since == NOW - timedelta(days=4)
    searched = JobQuery(state=tab, owner=owner, slurm_state=JobState.FAILED)
    assert ended.query(searched, NOW).since == page.since
    lately = query.model_copy(update={"days": 2})
    assert (ids(ended.query(lately, NOW)), ended.query(lately, NOW).since) == ("21", None)


def test_lists_in_the_order_of_an_index_have_no_end(ended: JobStore) -> None:
    for sort, order in ((JobSort.NEWEST, "12345"), (JobSort.OLDEST, "54321")):
        for owner in (None, "alice"):
            page = ended.query(JobQuery(sort=sort, owner=owner), NOW)
            assert (ids(page), page.since) == (order, None)
    last = ended.query(JobQuery(state=JobTab.ENDED, sort=JobSort.ENDED_LAST), NOW)
    assert (ids(last), last.since) == ("54321", None)


def test_rows_are_counted_up_to_a_bound(ended: JobStore) -> None:
    for query in (JobQuery(), JobQuery(owner="alice"), JobQuery(q="main")):
        assert ended.counts(query, NOW)[JobTab.ENDED] == 3


def test_the_queue_is_searched_as_a_whole(ended: JobStore) -> None:
    ended.save([queued_job(number) for number in range(10, 15)], NOW)
    for query in (JobQuery(q="main"), JobQuery(sort=JobSort.MOST_CPUS)):
        page = ended.query(query.model_copy(update={"state": JobTab.PENDING}), NOW)
        assert (len(page.rows), page.since) == (5, None)


def test_live_jobs_are_searched_whenever_they_were_submitted(ended: JobStore) -> None:
    long_ago = NOW - timedelta(days=30)
    ended.save([queued_job(6, JobState.RUNNING, submitted=long_ago)], NOW)
    for query in (JobQuery(q="main"), JobQuery(partition="main"), JobQuery(owner="alice", q="6")):
        page = ended.query(query, NOW)
        assert "6" in [row.job.id for row in page.rows]
        assert page.since is not None
        pages = [query.model_copy(update={"limit": 1})]
        while cursor := ended.query(pages[-1], NOW).following:
            pages.append(pages[-1].model_copy(update={"cursor": cursor}))
        assert "".join(ids(ended.query(each, NOW)) for each in pages) == ids(page)
