"""What the queue and accounting say, in unlucky orders: nothing is lost or revived."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import JobTab, JobTexts
from portal.core.jobs.query import JobQuery
from portal.store.jobs.store import JobStore
from tests.support.job_store import NOW, at, ended_job, job_by_id, migrated_store, queued_job


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    """A store in a migrated database."""
    return migrated_store(tmp_path)


def test_how_often_a_job_was_requeued_outlives_its_end(store: JobStore) -> None:
    store.save([queued_job(7, JobState.RUNNING, restarts=2)], NOW)
    store.leave(["7"], NOW)
    store.settle([ended_job(7, JobState.COMPLETED)])
    assert job_by_id(store, "7").report.restarts == 2
    store.settle(
        [ended_job(7, JobState.FAILED, user="bob", submitted=at(9))]
    )  # the number, used again
    assert job_by_id(store, "7").report.restarts == 0


def test_a_job_requeued_while_accounting_answers_is_not_asked_about_again(store: JobStore) -> None:
    store.save([queued_job(7, JobState.FAILED)], NOW)
    store.save([queued_job(7, submitted=at(6), restarts=1)], at(6))
    store.postpone(["7"], at(6))  # what accounting said of the question at 5
    assert store.unsettled(at(9999), 10) == []
    assert job_by_id(store, "7").gone is None


def test_an_earlier_run_in_accounting_is_asked_about_ever_more_seldom(store: JobStore) -> None:
    store.save([queued_job(7, JobState.FAILED, submitted=at(60), end=at(90), restarts=1)], at(90))
    store.settle([ended_job(7, JobState.COMPLETED)])
    assert job_by_id(store, "7").report.state is JobState.FAILED
    store.postpone(["7"], at(95))
    assert store.unsettled(at(104), 10) == []
    assert [one.id for one in store.unsettled(at(105), 10)] == ["7"]


def test_what_was_a_task_is_listed_alone_under_a_number_used_again(store: JobStore) -> None:
    store.save(
        [queued_job(20 + n, JobState.COMPLETED, array=20, tasks=str(n)) for n in range(3)], NOW
    )
    store.save([queued_job(21, submitted=at(60))], at(60))
    for tab in (None, JobTab.PENDING):
        rows = store.query(JobQuery(state=tab), NOW).rows
        assert "21" in [row.job.shown_id for row in rows]


def test_a_list_of_tasks_that_is_cut_deletes_none_of_those_that_ran(store: JobStore) -> None:
    waiting = queued_job(20, array=20, tasks="3,5,...%2")
    store.save([waiting, queued_job(21, JobState.COMPLETED, array=20, tasks="1")], NOW)
    store.leave(["21"], at(300))
    assert job_by_id(store, "20_1").report.state is JobState.COMPLETED


def test_a_new_limit_does_not_revive_a_job_that_ended_meanwhile(store: JobStore) -> None:
    store.save(
        [queued_job(7, JobState.RUNNING, time_limit=60), queued_job(8, JobState.RUNNING)], NOW
    )
    store.save([queued_job(8, JobState.COMPLETED)], at(1))
    for number in ("7", "8", "9"):
        store.extended(number, 90, at(5400))
    assert (job_by_id(store, "7").report.time_limit, job_by_id(store, "7").report.deadline) == (
        90,
        at(5400),
    )
    assert (job_by_id(store, "8").report.time_limit, job_by_id(store, "8").tab) == (
        None,
        JobTab.ENDED,
    )
    assert store.get("9") is None


def test_texts_of_jobs_that_left_while_no_worker_ran_are_not_asked_for(store: JobStore) -> None:
    store.save([queued_job(7, JobState.FAILED), queued_job(8, JobState.FAILED)], NOW)
    store.save_texts({"8": JobTexts("told")})
    assert store.live_ids() == {"7"}
    store.leave(["7"], at(600))
    assert store.without_texts(10) == []


def test_accounting_tells_nothing_of_a_job_that_the_queue_has(store: JobStore) -> None:
    running = replace(queued_job(7, JobState.RUNNING, submitted=at(60), restarts=1), signal=None)
    store.save([running], at(61))
    store.settle([ended_job(7, JobState.NODE_FAIL)])
    assert job_by_id(store, "7") == running


def test_only_columns_that_differ_are_written(store: JobStore) -> None:
    before = [queued_job(number) for number in range(1, 5)]
    store.save(before, NOW)
    after = [
        replace(before[0], report=replace(before[0].report, priority=9)),
        replace(before[1], report=replace(before[1].report, priority=7)),
        replace(before[2], report=replace(before[2].report, reason="Resources", account="other")),
        queued_job(4, JobState.RUNNING),
    ]
    statements: list[str] = []

    def note(*arguments: Any) -> None:
        statements.append(arguments[2])

    event.listen(store._engine, "before_cursor_execute", note)
    store.save(after, at(1))
    event.remove(store._engine, "before_cursor_execute", note)
    updates = [text for text in statements if text.startswith("UPDATE job ")]
    columns = [set(re.findall(r"(\w+)=", text.partition(" WHERE ")[0])) for text in updates]
    assert {"priority", "place"} in columns
    assert len(columns) == 3
    assert [job_by_id(store, job.id) for job in after] == after
