"""Pages of the list of jobs, with many jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from portal.adapters.db.engine import open_database, upgrade
from portal.adapters.db.jobs.store import JobTables
from portal.core.cluster.jobs import JobState
from portal.core.cluster.queue import queue_positions
from portal.core.jobs.job import JobTab, JobTexts
from portal.core.jobs.query import JobQuery, JobSort
from portal.errors import InvalidRequest
from tests.unit.adapters.db.jobs.test_store import NOW, job

MANY = 50_000


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> JobTables:
    """A store with 50,000 pending jobs of 200 users."""
    url = f"sqlite:///{tmp_path_factory.mktemp('jobs') / 'jobs.db'}"
    upgrade(url)
    store = JobTables(open_database(url))
    store.save(
        (
            job(
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


def test_50_000_jobs_are_all_there_once(full: JobTables) -> None:
    assert len(full.live_ids()) == MANY
    assert full.counts(JobQuery(), NOW)[JobTab.PENDING] == MANY
    assert full.counts(JobQuery(owner="u007"), NOW)[JobTab.PENDING] == 250
    assert len(full.owners()) == 200
    full.save([], NOW)
    full.leave(["1"], NOW)
    assert len(full.live_ids()) == MANY - 1
    full.save([job(1, user="u001", priority=2, reason="Priority")], NOW)
    assert len(full.live_ids()) == MANY


@pytest.mark.parametrize("sort", JobSort)
def test_pages_cover_all_jobs_in_order_and_back(full: JobTables, sort: JobSort) -> None:
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


def test_places_of_a_page_agree_with_those_of_the_whole_queue(full: JobTables) -> None:
    page = full.query(JobQuery(owner="u007"), NOW)
    jobs = [row.job for row in page.rows]
    everybody = full.get_many([str(number) for number in range(1, MANY + 1)])
    places = queue_positions(one.report for one in everybody)
    assert full.ahead(jobs) == {one.id: places[one.id] for one in jobs}


@pytest.mark.parametrize(
    ("state", "owner", "index"),
    [
        (JobTab.PENDING, "u007", "job_tab "),
        (JobTab.ENDED, None, "job_tab_of_all"),
        (None, "u007", "job_newest "),
        (None, None, "job_newest_of_all"),
    ],
)
def test_pages_are_read_by_an_index(
    full: JobTables, state: JobTab | None, owner: str | None, index: str
) -> None:
    statements: list[str] = []
    conditions = [f"owner = '{owner}'"] if owner else []
    conditions += [f"tab = '{state.value}'", "tab_head IS 1"] if state else ["all_head IS 1"]
    statements.append(
        f"EXPLAIN QUERY PLAN SELECT number FROM job WHERE {' AND '.join(conditions)} "
        "ORDER BY submitted DESC, number DESC LIMIT 51"
    )
    with full._engine.connect() as db:
        plan = " ".join(str(row[-1]) + " " for row in db.execute(text(statements[0])))
    assert f"USING COVERING INDEX {index}" in plan or f"USING INDEX {index}" in plan
    assert "TEMP B-TREE" not in plan


def test_words_days_and_other_filters(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    upgrade(url)
    store = JobTables(open_database(url))
    store.save(
        [
            job(1, account="physics", partition="gpu,main"),
            job(2, user="bob", submitted=NOW - timedelta(days=9)),
            job(3, JobState.RUNNING, nodes=("n17",)),
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
    assert found(account="physics") == ["1"]
    assert found(days=7) == ["3", "1"]
    assert found(slurm_state="RUNNING") == ["3"]
    assert found(sessions="only") == []
    assert found(sort="name") == ["1", "2", "3"]


def test_a_cursor_with_another_kind_of_id_is_refused(full: JobTables) -> None:
    page = full.query(JobQuery(limit=1), NOW)
    assert page.following is not None
    place = JobQuery(cursor=page.following).place
    assert place is not None
    wrong = str(type(place)(place.sort, place.before, datetime(2026, 1, 1, tzinfo=UTC), "x"))
    with pytest.raises(InvalidRequest) as caught:
        full.query(JobQuery(cursor=wrong), NOW)
    assert caught.value.errors[0].field == "cursor"
