"""The worker follows Slurm's jobs: polls, texts, ends, and what happened while it was down."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from portal.config import Settings
from portal.core.cluster.job_reports import JobState
from portal.core.jobs.job import Job, JobTab, JobTexts
from portal.core.jobs.query import JobQuery
from portal.errors import OutcomeUnknown, Unavailable
from portal.services.jobs import follower
from portal.services.jobs.follower import GAP, OVERLAP, SLICE
from tests.support.fakes import World, make_world
from tests.support.followed_jobs import follow_queue, followed_job, queue_job
from tests.support.job_store import ended_job


def test_from_the_queue_to_its_end(world: World) -> None:
    job = queue_job(world, 7, reason="Resources")
    follow_queue(world)
    assert followed_job(world, "7").report.reason == "Resources"
    assert followed_job(world, "7").texts.name == "job 7"
    assert followed_job(world, "7").texts.stdout == "/home/x/slurm-7.out"
    world.slurm.start(job)
    follow_queue(world)
    assert followed_job(world, "7").report.nodes == ("n1",)
    world.slurm.finish(job, "CANCELLED by 1003", code=0)
    follow_queue(world)
    assert followed_job(world, "7").tab is JobTab.ENDED
    assert followed_job(world, "7").report.cancelled_by is None
    world.clock.advance(seconds=5)
    world.worker.settle()
    assert followed_job(world, "7").report.cancelled_by == "carol"


def test_a_job_that_vanishes_between_two_polls_is_settled(world: World) -> None:
    job = queue_job(world, 7, "RUNNING", start=1, node="n1")
    follow_queue(world)
    world.slurm.finish(job, "FAILED", code=3)
    world.slurm.forgotten.add(7)
    follow_queue(world)
    assert followed_job(world, "7").report.state is JobState.RUNNING
    world.clock.advance(seconds=5)
    world.worker.settle()
    found = followed_job(world, "7")
    assert (found.report.state, found.report.exit_code, found.gone) == (JobState.FAILED, 3, None)


def test_not_found_is_not_ended(world: World) -> None:
    job = queue_job(world, 7, "RUNNING", start=1, node="n1")
    follow_queue(world)
    world.slurm.jobs.remove(job)
    follow_queue(world)
    world.clock.advance(seconds=5)
    world.worker.settle()
    found = followed_job(world, "7")
    assert (found.report.state, found.gone) == (JobState.RUNNING, world.clock.now)
    world.slurm.jobs.append(job)
    follow_queue(world)
    assert followed_job(world, "7").gone is None


def test_silent_accounting_ends_nothing(world: World) -> None:
    queue_job(world, 7, "RUNNING", start=1, node="n1")
    follow_queue(world)
    world.slurm.forgotten.add(7)
    follow_queue(world)
    world.clock.advance(seconds=60)
    world.slurm.accounting_down = True
    with pytest.raises(Unavailable):
        world.worker.settle()
    assert followed_job(world, "7").gone is None


def test_only_what_changed_is_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(1, 4):
        queue_job(world, number)
    follow_queue(world)
    written: list[str] = []
    store, save = world.systems.stores.jobs, world.systems.stores.jobs.save

    def noting(changed: list[Job], now: datetime) -> None:
        written.extend(job.id for job in changed)
        save(changed, now)

    monkeypatch.setattr(store, "save", noting)
    follow_queue(world)
    assert written == []
    world.slurm.start(world.slurm.jobs[1])
    follow_queue(world)
    assert written == ["2"]


def test_jobs_are_stored_in_the_order_of_their_numbers(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[str] = []
    monkeypatch.setattr(
        world.systems.stores.jobs, "save", lambda jobs, _now: stored.extend(job.id for job in jobs)
    )
    for number in (11, 2, 100):
        queue_job(world, number)
    follow_queue(world)
    assert stored == ["2", "11", "100"]


def test_other_writers_get_their_turn_while_many_jobs_are_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 4):
        queue_job(world, number)
    turns: list[float] = []

    def others_write(seconds: float) -> None:
        world.systems.stores.status.note_answer(world.clock.now)
        turns.append(seconds)

    monkeypatch.setattr(follower, "BATCH", 1)
    monkeypatch.setattr(follower, "time", SimpleNamespace(sleep=others_write))
    follow_queue(world)
    assert turns == [follower.PAUSE] * 4  # between three rows, and between their texts
    follow_queue(world)
    assert len(turns) == 4, "it waits although nothing is to be stored"
    world.slurm.jobs.clear()
    follow_queue(world)
    assert len(turns) == 6  # between three that left together


def test_other_writers_get_their_turn_while_history_is_stored(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, turns = world.clock.now, list[float]()
    ended = [ended_job(number, JobState.COMPLETED, end=now) for number in (11, 12, 13)]
    spans = iter([ended])
    monkeypatch.setattr(world.systems.slurm_jobs, "history", lambda *_: next(spans, []))
    monkeypatch.setattr(follower, "BATCH", 1)
    monkeypatch.setattr(follower, "time", SimpleNamespace(sleep=turns.append))
    follow_queue(world)
    world.worker.catch_up()
    assert turns == [follower.PAUSE] * 2
    assert followed_job(world, "13").tab is JobTab.ENDED


def test_a_failed_write_is_repeated(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    queue_job(world, 7)

    def broken(changed: object, now: datetime) -> None:
        raise RuntimeError("disk full")

    world.worker.poll()
    with monkeypatch.context() as patch:
        patch.setattr(world.systems.stores.jobs, "save", broken)
        with pytest.raises(RuntimeError):
            world.worker.follow()
    world.worker.follow()
    assert followed_job(world, "7").id == "7"


def test_jobs_that_left_while_the_worker_was_down(world: World, settings: Settings) -> None:
    job = queue_job(world, 7, "RUNNING", start=1, node="n1")
    follow_queue(world)
    world.slurm.finish(job, "TIMEOUT")
    world.slurm.forgotten.add(7)
    again = make_world(settings)
    again.slurm.jobs, again.slurm.forgotten = world.slurm.jobs, {7}
    again.clock.now = world.clock.now
    follow_queue(again, seconds=600)
    again.clock.advance(seconds=5)
    again.worker.settle()
    assert followed_job(again, "7").report.state is JobState.TIMEOUT


def questions(world: World) -> list[str]:
    """What accounting was asked about spans of time, but for what users wrote."""
    lines = [line for line in world.slurm.commands if "--starttime" in line]
    return [line for line in lines if "WorkDir" not in line]


def test_the_history_is_read_once_and_after_each_gap(world: World) -> None:
    ended = int(world.clock.now.timestamp()) - 60
    queue_job(world, 5, "COMPLETED", start=ended - 5, end=ended, node="n1")
    queue_job(world, 6, "RUNNING", start=ended, node="n1")
    world.slurm.forgotten.add(5)
    follow_queue(world)
    assert world.systems.stores.jobs.get("5") is None
    world.worker.catch_up()
    assert followed_job(world, "5").texts.name == "job 5"
    assert followed_job(world, "6").tab is JobTab.RUNNING
    asked = questions(world)
    assert len(asked) == timedelta(days=7) / SLICE
    world.worker.catch_up()
    follow_queue(world, seconds=GAP.total_seconds())
    world.worker.catch_up()
    assert questions(world) == asked
    queue_job(world, 8, "FAILED", start=ended, end=ended, node="n1")
    world.slurm.forgotten.add(8)
    follow_queue(world, seconds=GAP.total_seconds() + 1)
    world.worker.catch_up()
    assert followed_job(world, "8").report.state is JobState.FAILED
    assert len(questions(world)) == len(asked) + 1


def history(world: World) -> int:
    """How often accounting was asked which jobs ended in a span of time."""
    facts = [line for line in world.slurm.commands if "WorkDir" not in line]
    return sum("--starttime" in line for line in facts)


def test_what_came_and_went_between_two_polls_is_found_within_ten_minutes(world: World) -> None:
    follow_queue(world)
    world.worker.catch_up()
    asked = history(world)
    ended = int(world.clock.now.timestamp()) + 1
    queue_job(world, 8, "FAILED", start=ended, end=ended, node="n1")
    world.slurm.forgotten.add(8)
    for _ in range(20):
        follow_queue(world, seconds=GAP.total_seconds() / 2)
        world.worker.catch_up()
    assert history(world) == asked
    follow_queue(world)
    world.worker.catch_up()
    assert history(world) == asked + 1
    assert followed_job(world, "8").report.state is JobState.FAILED


def test_a_clock_that_was_set_back_asks_for_a_span_that_accounting_takes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow_queue(world)
    world.worker.catch_up()
    spans: list[tuple[datetime, datetime]] = []

    def noted(since: datetime, until: datetime) -> list[Job]:
        spans.append((since, until))
        return []

    monkeypatch.setattr(world.systems.slurm_jobs, "history", noted)
    follow_queue(world, seconds=-7200)
    world.worker.catch_up()
    now = world.clock.now
    assert spans == [(now - OVERLAP, now)]
    assert world.systems.stores.jobs.known_until() == now


def test_accounting_that_is_down_is_asked_once_at_a_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow_queue(world)
    world.slurm.accounting_down = True
    asked = []
    for _ in range(3):
        before = history(world)
        with pytest.raises(Unavailable):
            world.worker.catch_up()
        asked.append(history(world) - before)
    assert asked == [6, 1, 1]
    world.slurm.accounting_down = False
    world.worker.catch_up()
    assert world.systems.stores.jobs.known_until() == world.clock.now


def test_a_slice_that_is_too_large_is_read_in_pieces(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow_queue(world)
    spans: list[timedelta] = []

    def large(since: datetime, until: datetime) -> list[Job]:
        spans.append(until - since)
        if len(spans) == 1:
            raise Unavailable("printed too much")
        return []

    monkeypatch.setattr(world.systems.slurm_jobs, "history", large)
    world.worker.catch_up()
    assert spans[1] < spans[0] / 3
    assert world.systems.stores.jobs.known_until() == world.clock.now


def test_a_long_history_is_read_in_several_calls(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow_queue(world)
    spans: list[tuple[datetime, datetime]] = []

    def slow(since: datetime, until: datetime) -> list[Job]:
        spans.append((since, until))
        world.clock.advance(seconds=25)
        return []

    monkeypatch.setattr(world.systems.slurm_jobs, "history", slow)
    world.worker.catch_up()
    assert len(spans) == 3
    assert world.systems.stores.jobs.known_until() == spans[-1][1]
    for _ in range(10):
        world.worker.catch_up()
    assert len(spans) == timedelta(days=7) / SLICE
    ends, begins = [end for _, end in spans[:-1]], [begin for begin, _ in spans[1:]]
    assert [end - begin for end, begin in zip(ends, begins, strict=True)] == [OVERLAP] * len(ends)


def test_history_that_cannot_be_read_is_asked_for_again(world: World) -> None:
    follow_queue(world)
    world.slurm.accounting_down = True
    with pytest.raises(Unavailable):
        world.worker.catch_up()
    assert world.systems.stores.jobs.known_until() is None
    world.slurm.accounting_down = False
    world.worker.catch_up()
    assert world.systems.stores.jobs.known_until() == world.clock.now


def bounded_texts(world: World, monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """Let more texts than this be too large; returns the numbers of jobs that are asked for."""
    asked: list[int] = []
    texts = world.systems.slurm_jobs.texts

    def bounded(ids: list[str]) -> dict[str, JobTexts]:
        asked.append(len(ids))
        if len(ids) > most:
            raise OutcomeUnknown("printed too much")
        return texts(ids)

    monkeypatch.setattr(world.systems.slurm_jobs, "texts", bounded)
    return asked


def read_texts(world: World, *, fails: bool) -> None:
    with pytest.raises(OutcomeUnknown) if fails else nullcontext():
        world.worker.read_texts()


def test_texts_that_are_too_large_together_are_read_in_pieces(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 9):
        queue_job(world, number)
    world.worker.poll()
    world.worker.follow()
    asked = bounded_texts(world, monkeypatch, 2)
    read_texts(world, fails=True)
    read_texts(world, fails=False)
    assert asked == [8, 2]
    assert (followed_job(world, "8").texts.name, followed_job(world, "1").texts.name) == (
        "job 8",
        "",
    )


def test_after_too_large_an_answer_jobs_are_named_for_an_hour(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "MOST_NAMED", 4)
    for number in range(1, 41):
        queue_job(world, number)
    world.worker.poll()
    world.worker.follow()
    asked = bounded_texts(world, monkeypatch, 4)
    read_texts(world, fails=True)
    for _ in range(6):
        world.clock.advance(minutes=9)
        read_texts(world, fails=False)
    world.clock.advance(minutes=9)
    read_texts(world, fails=True)
    assert asked == [40, *[4] * 6, 16]


def test_silent_slurm_makes_no_pieces_of_texts(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, 9):
        queue_job(world, number)
    world.worker.poll()
    world.worker.follow()

    def silent(_ids: list[str]) -> dict[str, JobTexts]:
        raise Unavailable("Slurm does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(world.systems.slurm_jobs, "texts", silent)
        with pytest.raises(Unavailable):
            world.worker.read_texts()
    asked = bounded_texts(world, monkeypatch, 8)
    world.worker.read_texts()
    assert asked == [8]


def test_old_jobs_are_forgotten(world: World, settings: Settings) -> None:
    queue_job(world, 7, "FAILED", start=1, end=int(world.clock.now.timestamp()), node="n1")
    follow_queue(world)
    world.clock.advance(days=settings.batch.jobs_days - 1)
    world.worker.forget()
    assert followed_job(world, "7").tab is JobTab.ENDED
    world.clock.advance(days=2)
    world.worker.forget()
    assert world.systems.stores.jobs.get("7") is None


def test_old_tasks_are_counted(world: World, settings: Settings) -> None:
    ends = int(world.clock.now.timestamp())
    for number in (7, 8):
        tasks = {"array": 6, "tasks": str(number)}
        queue_job(world, number, "COMPLETED", start=1, end=ends, node="n1", **tasks)
    follow_queue(world)
    world.clock.advance(seconds=5)
    world.worker.settle()
    world.clock.advance(days=settings.batch.tasks_days - 1)
    catch_up_and_forget(world)
    assert followed_job(world, "6_7").id == "7"
    world.clock.advance(days=2)
    catch_up_and_forget(world)
    assert world.systems.stores.jobs.get("6_7") is None
    (row,) = world.systems.stores.jobs.query(JobQuery(), world.clock.now).rows
    assert row.states == {JobState.COMPLETED: 2}


def catch_up_and_forget(world: World) -> None:
    """Read accounting up to now, then delete and count what is old."""
    follow_queue(world)
    world.worker.catch_up()
    world.worker.forget()


def test_tasks_that_accounting_may_report_again_are_not_counted_yet(world: World) -> None:
    """As after a long gap: it is read in spans that overlap, while old tasks are counted."""
    jobs, end = world.systems.stores.jobs, world.clock.now - timedelta(days=8)
    tasks = [
        ended_job(number, JobState.COMPLETED, array=6, tasks=str(number), end=end)
        for number in range(7, 10)
    ]
    jobs.settle(tasks)
    world.worker.forget()  # nothing has been read from accounting up to any time
    jobs.set_known_until(end + OVERLAP)
    world.worker.forget()
    jobs.settle(tasks)  # the next span has them again
    jobs.set_known_until(world.clock.now)
    world.worker.forget()
    (row,) = jobs.query(JobQuery(), world.clock.now).rows
    assert row.states == {JobState.COMPLETED: 3}
    assert jobs.query(JobQuery(array="6"), world.clock.now).counted == 2


def test_other_writers_get_their_turn_while_old_jobs_are_deleted(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleted, turns = iter((500, 500, 0)), list[float]()
    monkeypatch.setattr(world.systems.stores.jobs, "delete_ended", lambda _before: next(deleted))
    monkeypatch.setattr(follower, "time", SimpleNamespace(sleep=turns.append))
    world.worker.forget()
    assert turns == [follower.PAUSE] * 2


def test_deleting_pauses_so_that_the_worker_does_not_seem_to_hang(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def slow(_before: datetime) -> int:
        calls.append(world.clock.now)
        world.clock.advance(seconds=25)
        return 500

    monkeypatch.setattr(world.systems.stores.jobs, "delete_ended", slow)
    world.worker.forget()
    assert len(calls) == 3


def test_the_end_of_a_large_array_is_read_at_once_in_pieces(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "ENDS_AT_ONCE", 4)
    for number in range(1, 11):
        queue_job(world, number, "RUNNING", start=1, node="n1")
    follow_queue(world)
    for job in world.slurm.jobs:
        world.slurm.finish(job, "COMPLETED")
    world.slurm.forgotten.update(range(1, 11))
    follow_queue(world)
    pieces: list[int] = []
    ended = world.systems.slurm_jobs.ended

    def noted(ids: list[str]) -> dict[str, Job]:
        pieces.append(len(ids))
        return {number: job for number, job in ended(ids).items() if number != "10"}

    monkeypatch.setattr(world.systems.slurm_jobs, "ended", noted)
    world.clock.advance(seconds=5)
    world.worker.settle()
    assert pieces == [4, 4, 2]
    assert world.systems.stores.jobs.counts(JobQuery(), world.clock.now)[JobTab.ENDED] == 9
    world.worker.settle()
    assert pieces == [4, 4, 2]  # the end that accounting lacks is asked for later


def test_50_000_jobs(world: World) -> None:
    start = int(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
    for number in range(1, 50_001):
        queue_job(world, number, "RUNNING" if number % 100 == 0 else "PENDING", start=start)
    world.worker.poll()
    world.worker.follow()
    counts = world.systems.stores.jobs.counts(JobQuery(), world.clock.now)
    assert counts == {JobTab.PENDING: 49_500, JobTab.RUNNING: 500, JobTab.ENDED: 0}
    world.slurm.finish(world.slurm.jobs[99], "COMPLETED")
    world.slurm.forgotten.add(200)
    world.worker.poll()
    world.worker.follow()
    counts = world.systems.stores.jobs.counts(JobQuery(), world.clock.now)
    assert counts == {JobTab.PENDING: 49_500, JobTab.RUNNING: 499, JobTab.ENDED: 1}
    world.clock.advance(seconds=5)
    unsettled = world.systems.stores.jobs.unsettled(world.clock.now, 10)
    assert {job.id for job in unsettled} == {"100", "200"}
