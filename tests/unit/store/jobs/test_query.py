"""Pages of the list of jobs, with many jobs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from portal.core.cluster.job_reports import JobState
from portal.core.cluster.queue import queue_positions
from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.query import JobQuery, JobSort
from portal.errors import InvalidRequest
from portal.store.engine import open_database, upgrade
from portal.store.jobs.store import JobStore
from tests.support.job_store import NOW, queued_job

MANY = 50_000
KEYS: dict[str, Callable[[Job], Any]] = {
    "submitted": lambda one: one.report.submitted,
    "owner": lambda one: one.report.user,
    "priority": lambda one: one.report.priority,
    "cpus": lambda one: one.report.cpus,
}
"""What differs among the jobs of `full`."""


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> JobStore:
    """A store with 50,000 pending jobs of 200 users."""
    url = f"sqlite:///{tmp_path_factory.mktemp('jobs') / 'jobs.db'}"
    upgrade(url)
    store = JobStore(open_database(url))
    store.save(
        (
            queued_job(
                number,
                user=f"u{number % 200:03}",
                priority=number % 7 + 1,
                submitted=NOW - timedelta(seconds=number % 1000),
                cpus=number % 5,
                reason="Priority",
            )
            for number in range(1, MANY + 1)
        ),
        NOW,
    )
    return store


def test_50_000_jobs_are_all_there_once(full: JobStore) -> None:
    assert len(full.live_ids()) == MANY
    assert full.counts(JobQuery(), NOW)[JobTab.PENDING] == MANY
    assert full.counts(JobQuery(owner="u007"), NOW)[JobTab.PENDING] == 250
    assert len(full.owners(300)) == 200
    full.save([], NOW)
    full.leave(["1"], NOW)
    assert len(full.live_ids()) == MANY - 1
    full.save([queued_job(1, user="u001", priority=2, reason="Priority")], NOW)
    assert len(full.live_ids()) == MANY


@pytest.mark.parametrize("sort", JobSort)
def test_pages_cover_all_jobs_in_order_and_back(full: JobStore, sort: JobSort) -> None:
    query = JobQuery(owner="u007", sort=sort, limit=60)
    seen, pages = [], []
    while True:
        page = full.query(query, NOW)
        pages.append([row.job.id for row in page.rows])
        seen += pages[-1]
        if page.following is None:
            break
        query = query.model_copy(update={"cursor": page.following})
    assert len(seen) == len(set(seen)) == 250
    back = full.query(query.model_copy(update={"cursor": page.previous}), NOW)
    assert [row.job.id for row in back.rows] == pages[-2]
    key = KEYS.get(sort.key)  # the others are equal
    jobs = full.get_many(seen)
    order = sorted(
        jobs, key=lambda one: (key(one) if key else 0, int(one.id)), reverse=sort.descending
    )
    assert seen == [one.id for one in order]


def test_places_of_a_page_agree_with_those_of_the_whole_queue(full: JobStore) -> None:
    page = full.query(JobQuery(owner="u007"), NOW)
    jobs = [row.job for row in page.rows]
    everybody = full.get_many([str(number) for number in range(1, MANY + 1)])
    reports = [one.report for one in everybody]
    places = queue_positions(reports, reports)
    assert full.ahead(jobs) == {one.id: places[one.id] for one in jobs}


def plan_of(store: JobStore, query: JobQuery) -> str:
    """How SQLite finds the rows of a page, in its words."""
    asked: list[tuple[str, Any]] = []

    def note(_db: Any, _cursor: Any, statement: str, values: Any, *_: object) -> None:
        asked.append((statement, values))

    event.listen(store._engine, "before_cursor_execute", note)
    try:
        store.query(query, NOW)
    finally:
        event.remove(store._engine, "before_cursor_execute", note)
    statement, values = next(one for one in asked if "ORDER BY" in one[0])
    with store._engine.connect() as db:
        plan = db.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
        return " ".join(f"{row[-1]} " for row in plan)


@pytest.mark.parametrize("tab", JobTab)
@pytest.mark.parametrize("sort", JobSort)
def test_everybodys_pages_are_read_by_an_index_in_every_order(
    full: JobStore, tab: JobTab, sort: JobSort
) -> None:
    assert "TEMP B-TREE" not in plan_of(full, JobQuery(state=tab, sort=sort))


@pytest.mark.parametrize(
    ("query", "index"),
    [
        (JobQuery(state=JobTab.PENDING, owner="u007"), "job_tab "),
        (JobQuery(owner="u007"), "job_newest "),
        (JobQuery(), "job_newest_of_all"),
    ],
)
def test_the_newest_jobs_are_read_by_an_index(full: JobStore, query: JobQuery, index: str) -> None:
    plan = plan_of(full, query)
    assert f"USING COVERING INDEX {index}" in plan or f"USING INDEX {index}" in plan
    assert "TEMP B-TREE" not in plan


def test_every_column_sorts_in_both_directions(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    upgrade(url)
    store = JobStore(open_database(url))
    hours = [NOW - timedelta(hours=number) for number in range(4)]
    store.save(
        [
            queued_job(
                1, user="bob", submitted=hours[1], start=hours[0], reason="Priority", priority=9
            ),
            queued_job(
                2, user="alice", submitted=hours[3], partition="gpu", reason="Dependency", cpus=8
            ),
            queued_job(3, user="carol", submitted=hours[2], time_limit=60, memory_mb=512),
            queued_job(4, JobState.RUNNING, user="dave", submitted=hours[0], time_limit=5),
            queued_job(5, JobState.FAILED, user="erin", submitted=hours[0], end=hours[1]),
        ],
        NOW,
    )
    names = {"1": "b", "2": "A", "3": "a", "4": "c", "5": "C"}
    store.save_texts({number: JobTexts(name) for number, name in names.items()})
    rising = {
        "submitted": "23145", "name": "23145", "owner": "21345", "status": "53214",
        "partition": "21345", "started": "51234", "ended": "51234", "time_limit": "43125",
        "priority": "23451", "cpus": "13452", "memory": "12453",
    }  # fmt: skip
    assert set(rising) == {sort.key for sort in JobSort}
    for sort in JobSort:
        found = "".join(row.job.id for row in store.query(JobQuery(sort=sort), NOW).rows)
        assert found == (rising[sort.key][::-1] if sort.descending else rising[sort.key]), sort


def test_words_days_and_other_filters(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    upgrade(url)
    store = JobStore(open_database(url))
    store.save(
        [
            queued_job(1, account="physics", partition="gpu,main"),
            queued_job(2, user="bob", submitted=NOW - timedelta(days=9)),
            queued_job(3, JobState.RUNNING, nodes=("n17",)),
        ],
        NOW,
    )
    store.save_texts({"1": JobTexts("Train 100%"), "2": JobTexts("train_b"), "3": JobTexts("x")})

    def found(**query: object) -> list[str]:
        return [row.job.id for row in store.query(JobQuery.model_validate(query), NOW).rows]

    assert found(q="train") == ["1", "2"]
    assert found(q="train 100%") == ["1"]
    assert found(q="t_a") == []  # no wildcard
    assert found(q="bob") == ["2"]
    assert found(q="bob", owner="alice") == []
    assert found(q="n17") == ["3"]
    assert found(q="2") == ["2"]
    assert found(partition="main") == ["3", "1", "2"]
    assert found(partition="gpu") == ["1"]
    assert found(account="physics") == found(account="Physics") == ["1"]
    assert found(account="physic") == []
    assert found(days=7) == ["3", "1"]
    assert found(slurm_state="RUNNING") == ["3"]
    assert found(sessions="only") == []
    assert found(sort="name") == ["1", "2", "3"]


def test_a_cursor_with_another_kind_of_id_is_refused(full: JobStore) -> None:
    page = full.query(JobQuery(limit=1), NOW)
    assert page.following is not None
    place = JobQuery(cursor=page.following).place
    assert place is not None
    wrong = str(type(place)(place.sort, place.before, datetime(2026, 1, 1, tzinfo=UTC), "x"))
    with pytest.raises(InvalidRequest) as caught:
        full.query(JobQuery(cursor=wrong), NOW)
    assert caught.value.errors[0].field == "cursor"
