"""Old jobs: tasks that are only counted, and what is deleted."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.query import JobQuery
from portal.store.changes import ChangeStore
from portal.store.jobs.store import PIECE, JobStore
from tests.support.job_store import NOW, at, ended_job, job_by_id, migrated_store, queued_job

LONG_AGO = NOW - timedelta(days=8)
BEFORE = NOW - timedelta(days=7)
ENDED = JobQuery(state=JobTab.ENDED)


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    """An empty store."""
    return migrated_store(tmp_path)


def task(number: int, state: JobState = JobState.COMPLETED, **more: object) -> Job:
    """A task of the array 20 that ended long ago."""
    values = {"array": 20, "tasks": str(number - 21), "end": LONG_AGO, **more}
    return ended_job(number, state, **values)


def states(store: JobStore, tab: JobTab | None = JobTab.ENDED) -> dict[JobState, int]:
    """The number of tasks in each state, as the list of a tab shows them."""
    (row,) = store.query(JobQuery(state=tab), NOW).rows
    return dict(row.states)


def count_all(store: JobStore) -> int:
    """Count tasks until none is left to count; returns their number."""
    number = 0
    while counted := store.count_tasks(BEFORE):
        number += counted
    return number


def test_completed_tasks_are_counted_and_the_others_stay(store: JobStore) -> None:
    store.settle(
        [
            *(task(number) for number in range(21, 25)),
            task(25, JobState.FAILED),
            task(26, JobState.CANCELLED),
            task(27, JobState.TIMEOUT),
            task(28, end=NOW),
            task(29),
            ended_job(40, JobState.COMPLETED, end=LONG_AGO),
        ]
    )
    store.save_texts({"21": JobTexts("a"), "29": JobTexts("a")})
    before = store.query(ENDED, NOW)
    assert before.rows[1].states[JobState.COMPLETED] == 6
    assert count_all(store) == 5
    assert store.query(ENDED, NOW) == before
    each = JobQuery(array="20")
    listed = store.query(each, NOW)
    assert sorted(row.job.id for row in listed.rows) == ["25", "27", "28", "29"]
    assert listed.counted == 5
    assert store.counts(each, NOW)[JobTab.ENDED] == 9
    assert store.get("21") is None
    assert job_by_id(store, "20").id == job_by_id(store, "20_8").id == "29"
    assert job_by_id(store, "40").id == "40"  # no task


def test_counted_tasks_match_only_what_is_known_of_them(store: JobStore) -> None:
    store.settle([*(task(number) for number in range(21, 24)), task(24, JobState.CANCELLED)])
    assert count_all(store) == 3

    def counted(**filters: object) -> tuple[int, int]:
        query = JobQuery.model_validate({"array": "20", **filters})
        return store.query(query, NOW).counted, store.counts(query, NOW)[JobTab.ENDED]

    assert counted() == (3, 4)
    assert counted(slurm_state=JobState.COMPLETED)[0] == 3
    assert counted(slurm_state=JobState.FAILED)[0] == 0
    assert counted(sessions="no") == (3, 4)
    for filters in ({"q": "other"}, {"partition": "gpu"}, {"account": "x"}, {"sessions": "only"}):
        assert counted(**filters) == (0, 0)
    assert store.states_of_array("20") == {JobState.COMPLETED: 3, JobState.CANCELLED: 1}
    assert store.states_of_array("21") == {}


def test_counts_add_up_and_go_with_the_arrays_last_row(store: JobStore) -> None:
    store.settle([task(21), task(22), task(23, JobState.FAILED)])
    assert count_all(store) == 2
    store.settle([task(24), task(25)])
    assert count_all(store) == 1  # the last one is the array's row
    assert states(store) == {JobState.COMPLETED: 4, JobState.FAILED: 1}
    assert store.delete_ended(BEFORE) == 2
    assert store.query(JobQuery(array="20"), NOW).counted == 0
    store.settle([task(30)])
    assert states(store) == {JobState.COMPLETED: 1}


def test_tasks_of_an_array_that_still_runs_are_counted(store: JobStore) -> None:
    store.save([queued_job(20, array=20, tasks="30-39%2")], NOW)
    store.save([queued_job(29, JobState.RUNNING, array=20, tasks="8")], NOW)
    store.settle([task(21), task(22)])
    assert count_all(store) == 1
    assert states(store) == {JobState.COMPLETED: 2}
    assert states(store, JobTab.RUNNING) == {JobState.RUNNING: 1}
    assert states(store, None) == {
        JobState.COMPLETED: 2, JobState.RUNNING: 1, JobState.PENDING: 10
    }  # fmt: skip
    assert store.query(JobQuery(array="20", state=JobTab.RUNNING), NOW).counted == 0


def test_tasks_cancelled_before_they_started_count_as_many(store: JobStore) -> None:
    store.settle([task(20, JobState.CANCELLED, tasks="3-9"), task(25), task(26)])
    assert count_all(store) == 2
    assert states(store) == {JobState.CANCELLED: 7, JobState.COMPLETED: 2}


def test_ends_that_accounting_has_not_reported_are_not_counted(store: JobStore) -> None:
    store.save([task(21), task(22)], NOW)
    assert count_all(store) == 0
    store.settle([task(21), task(22)])
    assert count_all(store) == 1


def test_nobody_learns_the_number_of_others_tasks(store: JobStore) -> None:
    store.settle([task(21), task(22)])
    count_all(store)
    theirs = JobQuery(array="20", owner="bob")
    assert store.counts(theirs, NOW)[JobTab.ENDED] == store.query(theirs, NOW).counted == 0
    assert store.query(JobQuery(array="20", owner="alice"), NOW).counted == 1


def test_old_jobs_go_some_at_a_time(store: JobStore) -> None:
    number = PIECE + 10
    store.settle([ended_job(n, JobState.COMPLETED, end=LONG_AGO) for n in range(1, number + 1)])
    assert store.delete_ended(BEFORE) == PIECE
    assert store.delete_ended(BEFORE) == 10
    assert store.delete_ended(BEFORE) == 0


def test_jobs_that_are_gone_are_deleted(store: JobStore) -> None:
    store.save([queued_job(1), queued_job(2)], NOW)
    store.leave(["1"], NOW)
    store.postpone(["1"], at(10))
    assert store.delete_ended(at(5)) == 0
    assert store.delete_ended(at(11)) == 1
    assert store.get("1") is None
    assert store.get("2") is not None


def test_polling_pages_notice(store: JobStore) -> None:
    changes = ChangeStore(store._engine)
    store.settle([task(21), task(22)])
    before = changes.numbers("alice", NOW).person
    store.count_tasks(BEFORE)
    assert changes.numbers("alice", NOW).person > before
