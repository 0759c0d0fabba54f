"""Jobs in the database: what the queue and accounting tell, in any order."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import JobTab, JobTexts
from portal.core.jobs.query import JobQuery
from portal.store.jobs.store import JobStore
from tests.support.fakes import World
from tests.support.job_store import NOW, at, ended_job, job_by_id, migrated_store, queued_job
from tests.support.sessions import ALICE, REQUEST


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    """A store in a migrated database."""
    return migrated_store(tmp_path)


def test_a_job_is_stored_as_it_was_read(store: JobStore) -> None:
    one = replace(
        queued_job(
            7, JobState.RUNNING, reason="None", nodes=("n1", "n2"), start=at(1), deadline=at(3601),
            time_limit=60, restarts=2, account="research", qos="normal", cpus=4, memory_mb=600,
            shards=1, gpus=2, priority=4_000_000_000,
        ),
        het_id="6",
        het_offset=1,
    )  # fmt: skip
    store.save([one], NOW)
    assert job_by_id(store, "6+1") == one
    assert job_by_id(store, "7") == one


def test_the_end_is_told_by_accounting_once(store: JobStore) -> None:
    over = replace(queued_job(7, JobState.CANCELLED, nodes=("n1",), exit_code=0), signal=15)
    store.save([over], NOW)
    assert store.unsettled(at(4), 10) == []  # accounting may lag behind
    (asked,) = store.unsettled(at(5), 10)
    assert asked == over
    told = ended_job(7, JobState.CANCELLED, nodes=("n1",), cancelled_by="root", exit_code=0)
    store.settle([told])
    assert store.unsettled(at(9999), 10) == []
    assert job_by_id(store, "7").report.cancelled_by == "root"
    store.save([over], at(60))  # as a worker does that starts again
    assert job_by_id(store, "7").report.cancelled_by == "root"
    assert store.unsettled(at(9999), 10) == []


def test_a_job_that_left_the_queue_is_gone_only_if_accounting_lacks_it_too(store: JobStore) -> None:
    store.save([queued_job(7, JobState.RUNNING), queued_job(8, JobState.RUNNING)], NOW)
    store.leave(["7"], at(10))
    assert store.live_ids() == {"8"}
    assert job_by_id(store, "7").gone is None
    (asked,) = store.unsettled(at(15), 10)
    store.postpone([asked.id], at(15))
    gone = job_by_id(store, "7")
    assert (gone.gone, gone.report.state, gone.tab) == (at(15), JobState.RUNNING, JobTab.RUNNING)
    assert store.unsettled(at(20), 10) == []
    assert [one.id for one in store.unsettled(at(25), 10)] == ["7"]
    store.settle([ended_job(7, JobState.COMPLETED)])
    found = job_by_id(store, "7")
    assert (found.gone, found.report.state) == (None, JobState.COMPLETED)


def test_accounting_is_asked_ever_more_seldom_and_not_for_ever(store: JobStore) -> None:
    store.save([queued_job(7, JobState.RUNNING)], NOW)
    store.leave(["7"], NOW)
    store.postpone(["7"], NOW)
    store.postpone(["7"], NOW + timedelta(hours=30))
    later = NOW + timedelta(hours=31)
    assert store.unsettled(later - timedelta(seconds=1), 10) == []
    assert [one.id for one in store.unsettled(later, 10)] == ["7"]
    store.postpone(["7"], NOW + timedelta(days=8))
    assert store.unsettled(NOW + timedelta(days=400), 10) == []


def test_a_job_that_comes_back_is_in_the_queue_again(store: JobStore) -> None:
    one = queued_job(7, JobState.RUNNING)
    store.save([one], NOW)
    store.leave(["7"], at(1))
    store.postpone(["7"], at(9))
    store.save([one], at(10))
    assert job_by_id(store, "7").gone is None
    assert store.unsettled(at(9999), 10) == []
    assert store.live_ids() == {"7"}


def test_a_requeued_job_lives_again(store: JobStore) -> None:
    store.save([queued_job(7, JobState.FAILED)], NOW)
    store.settle([ended_job(7, JobState.FAILED, exit_code=3)])
    again = queued_job(7, submitted=at(60), restarts=1)
    store.save([again], at(60))
    assert job_by_id(store, "7") == again
    store.settle(
        [ended_job(7, JobState.FAILED, exit_code=3)]
    )  # what accounting had of the first run
    assert job_by_id(store, "7").tab is JobTab.PENDING


def test_a_number_that_slurm_uses_again_has_none_of_the_old_texts(store: JobStore) -> None:
    store.save([queued_job(7, JobState.COMPLETED)], NOW)
    store.save_texts({"7": JobTexts("secret", "/home/alice")})
    store.save([queued_job(7, user="bob", submitted=at(60))], at(60))
    assert job_by_id(store, "7").texts == JobTexts()
    assert store.without_texts(10) == ["7"]


def test_texts_are_bounded_and_names_can_be_shown(store: JobStore) -> None:
    store.save([queued_job(7), queued_job(8)], NOW)
    assert store.without_texts(10) == ["8", "7"]
    store.save_texts({"7": JobTexts("a\nb\x1b" + "x" * 300, "/" + "d" * 5000), "9": JobTexts("?")})
    texts = job_by_id(store, "7").texts
    assert texts.name == "a\ufffdb\ufffd" + "x" * 196
    assert len(texts.directory) == 4096
    assert store.without_texts(10) == ["8"]
    assert store.get("9") is None


def test_known_texts_are_kept_when_a_job_ends(store: JobStore) -> None:
    store.save([queued_job(7, JobState.RUNNING)], NOW)
    store.save_texts({"7": JobTexts("mine", "/home/alice", "run.sh", "/o-%j", "/o-%j")})
    told = replace(ended_job(7, JobState.COMPLETED), texts=JobTexts("mine", "/home/alice"))
    store.settle([told, replace(ended_job(8, JobState.COMPLETED), texts=JobTexts("new"))])
    assert job_by_id(store, "7").texts == JobTexts("mine", "/home/alice", "run.sh", "/o-7", "/o-7")
    assert job_by_id(store, "8").texts.name == "new"


def test_jobs_of_sessions_are_recognised(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    store = world.systems.stores.jobs
    store.save([queued_job(1), queued_job(2), queued_job(3, user="bob")], NOW)
    store.save_texts(dict.fromkeys(("1", "2", "3"), JobTexts(session.id)))
    assert job_by_id(store, "1").session == session.id
    assert job_by_id(store, "2").session is None  # has only taken the name
    assert job_by_id(store, "3").session is None


# Arrays


def test_an_array_is_one_row_with_the_states_of_its_tasks(store: JobStore) -> None:
    waiting = queued_job(20, array=20, tasks="3-9%2")
    tasks = [
        queued_job(21, JobState.RUNNING, array=20, tasks="1"),
        queued_job(22, JobState.RUNNING, array=20, tasks="2"),
        queued_job(23, JobState.COMPLETED, array=20, tasks="0"),
    ]
    store.save([waiting, *tasks, queued_job(30)], NOW)

    def rows(tab: JobTab | None) -> list[tuple[str, dict[JobState, int]]]:
        page = store.query(JobQuery(state=tab), NOW)
        return [(row.job.shown_id, dict(row.states)) for row in page.rows]

    assert rows(JobTab.PENDING) == [("30", {}), ("20_[3-9%2]", {JobState.PENDING: 7})]
    assert rows(JobTab.RUNNING) == [("20_2", {JobState.RUNNING: 2})]
    assert rows(JobTab.ENDED) == [("20_0", {JobState.COMPLETED: 1})]
    everything = {JobState.PENDING: 7, JobState.RUNNING: 2, JobState.COMPLETED: 1}
    assert rows(None) == [("30", {}), ("20_[3-9%2]", everything)]
    assert store.counts(JobQuery(), NOW) == {
        JobTab.PENDING: 2, JobTab.RUNNING: 1, JobTab.ENDED: 1
    }  # fmt: skip
    each = store.query(JobQuery(array="20"), NOW)
    assert sorted(row.job.id for row in each.rows) == ["20", "21", "22", "23"]
    assert not any(row.is_array for row in each.rows)


def test_an_array_is_found_by_any_of_its_tasks(store: JobStore) -> None:
    store.save(
        [
            queued_job(21, JobState.FAILED, array=20, tasks="0", nodes=("n7",)),
            queued_job(22, JobState.COMPLETED, array=20, tasks="1"),
            queued_job(20, JobState.COMPLETED, array=20, tasks="2"),
        ],
        NOW,
    )
    failed = store.query(JobQuery(state=JobTab.ENDED, slurm_state=JobState.FAILED), NOW)
    assert [row.job.array_id for row in failed.rows] == ["20"]
    assert len(store.query(JobQuery(q="n7"), NOW).rows) == 1
    assert store.query(JobQuery(q="n7", slurm_state=JobState.COMPLETED), NOW).rows == ()


def test_tasks_are_found_by_their_numbers(store: JobStore) -> None:
    waiting, task = (
        queued_job(20, array=20, tasks="3-9%2"),
        queued_job(21, JobState.RUNNING, array=20, tasks="1"),
    )
    store.save([waiting, task], NOW)
    assert job_by_id(store, "20_1").id == "21"
    assert job_by_id(store, "20_4").id == "20"  # has not started
    assert job_by_id(store, "20_[3-9%2]").id == "20"
    assert job_by_id(store, "20").id == "20"
    assert job_by_id(store, "21").shown_id == "20_1"
    for wrong in ("20_2", "20+1", "99", "99_1", "x", "20_", "²0", "20;1", "9" * 40):
        assert store.get(wrong) is None
    assert {one.id for one in store.get_many(["20"])} == {"20", "21"}
    assert [one.id for one in store.get_many(["21", "x"])] == ["21"]


def test_of_tasks_that_are_over_one_is_read_to_act_on_an_array(store: JobStore) -> None:
    """Hundreds of thousands of them, with paths of 4 KB each, once filled the memory."""
    over = [queued_job(n, JobState.COMPLETED, array=20, tasks=str(n)) for n in range(21, 29)]
    store.save([*over, queued_job(29, JobState.RUNNING, array=20, tasks="29")], NOW)
    store.save_texts({"29": JobTexts("n29", "/d", stdout="/o"), "28": JobTexts("n28", "/d")})
    (alive,) = store.get_many(["20"])
    assert (alive.id, alive.texts) == ("29", JobTexts("n29"))
    store.save([queued_job(29, JobState.COMPLETED, array=20, tasks="29")], NOW)
    assert [one.id for one in store.get_many(["20"])] == ["29"]
    assert [one.id for one in store.get_many(["20", "22"])] == ["22", "29"]


def test_tasks_cancelled_before_they_started_stay_in_their_array(store: JobStore) -> None:
    store.save([queued_job(20, array=20, tasks="3-9%2")], NOW)
    store.save([queued_job(20, JobState.CANCELLED)], at(9))  # so squeue shows it (tests/recorded)
    assert job_by_id(store, "20").shown_id == "20_[3-9%2]"


def test_a_task_that_was_requeued_into_its_array_is_no_job_of_its_own(store: JobStore) -> None:
    store.save(
        [
            queued_job(20, array=20, tasks="3-9"),
            queued_job(21, JobState.RUNNING, array=20, tasks="1"),
        ],
        NOW,
    )
    store.save([queued_job(20, array=20, tasks="1,3-9")], at(2))
    store.leave(["21"], at(2))
    assert store.get("21") is None
    assert job_by_id(store, "20_1").id == "20"
    assert store.counts(JobQuery(), NOW)[JobTab.RUNNING] == 0


def test_old_jobs_are_deleted_and_their_arrays_stay_listed(store: JobStore) -> None:
    old = NOW - timedelta(days=100)
    store.save(
        [
            queued_job(21, JobState.COMPLETED, array=20, tasks="0"),
            queued_job(22, JobState.COMPLETED, array=20, tasks="1", end=old),
            queued_job(9, JobState.FAILED, end=old),
            queued_job(8, JobState.RUNNING),
        ],
        NOW,
    )
    assert store.delete_ended(NOW - timedelta(days=90)) == 2
    rows = store.query(JobQuery(), NOW).rows
    assert [row.job.id for row in rows] == ["21", "8"]
    assert store.delete_ended(NOW - timedelta(days=90)) == 0


# Places in the queue, and locks


def test_places_in_the_queue_are_those_of_slurm(store: JobStore) -> None:
    jobs = [
        queued_job(1, priority=5),
        queued_job(2, priority=9),
        queued_job(3, priority=5, submitted=at(-9)),
        queued_job(4, priority=0, reason="JobHeldUser"),
        queued_job(5, priority=7, reason="Dependency"),
        queued_job(6, partition="other"),
        queued_job(7, JobState.RUNNING, priority=99),
    ]
    store.save(jobs, NOW)
    assert store.ahead(jobs) == {"2": 0, "3": 1, "1": 2, "6": 0}
    assert store.ahead([jobs[0]]) == {"1": 2}
    assert store.ahead([]) == {}


def test_one_extension_at_a_time(store: JobStore) -> None:
    store.save([queued_job(7, JobState.RUNNING)], NOW)
    lease = timedelta(seconds=120)
    assert store.claim("7", NOW, lease)
    assert not store.claim("7", at(119), lease)
    assert store.claim("7", at(121), lease)  # the first one has crashed
    store.release_claim("7", NOW)  # and does not take the lock of the second with it
    assert not store.claim("7", at(122), lease)
    store.release_claim("7", at(121))
    assert store.claim("7", at(122), lease)


def test_owners_and_history(store: JobStore) -> None:
    assert store.owners(10) == []
    store.save(
        [queued_job(n, user=u) for n, u in enumerate(["bob", "alice", "bob", "carol"], 1)], NOW
    )
    assert store.owners(10) == ["alice", "bob", "carol"]
    assert store.known_until() is None
    store.set_known_until(at(1))
    store.set_known_until(at(2))
    assert store.known_until() == at(2)
