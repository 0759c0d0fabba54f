"""What people see of jobs, and what they can do to them."""

from __future__ import annotations

from typing import Any

import pytest

from portal.config import Settings
from portal.core.admin.audit import AuditFilter
from portal.core.cluster.extensions import Extensions
from portal.core.jobs.actions import JobAction, JobOutcome
from portal.core.jobs.job import JobTab
from portal.core.jobs.query import JobPage, JobQuery
from portal.errors import Conflict, InvalidRequest, NotFound
from portal.services.extending import LEASE
from tests.support.fakes import World, make_world
from tests.support.followed_jobs import follow_queue, followed_job, queue_job
from tests.support.sessions import ADMIN, ALICE, BOB, REQUEST, make_ready, poll_slurm
from tests.support.slurm import FakeJob


@pytest.fixture
def operated(settings: Settings) -> World:
    """A portal with an operator's account, which may extend time limits."""
    values = settings.model_dump()
    values["slurm"]["operator"] = "operator"
    world = make_world(Settings.model_validate(values))
    world.worker.read_partitions()
    world.worker.read_limits()
    return world


def running(world: World, number: int, **more: Any) -> FakeJob:
    """A running job."""
    job = queue_job(world, number, **more)
    world.slurm.start(job)
    return job


def events(world: World) -> list[tuple[str, str, str, str]]:
    """The audit log's events about jobs, oldest first."""
    page = world.systems.stores.administration.events(AuditFilter(), 100, None)
    lines = [(e.who, e.action, e.target, e.detail) for e in page]
    return [line for line in reversed(lines) if line[1].startswith("job.")]


# Reading


def end_text(world: World, number: str) -> str:
    """How a job ended, in words."""
    job = followed_job(world, number)
    return world.services.jobs.end_texts([job])[job.id]


def test_others_jobs_are_indistinguishable_from_none(world: World) -> None:
    running(world, 7)
    follow_queue(world)
    jobs = world.services.jobs
    assert jobs.get(ALICE, "7").id == "7"
    assert jobs.get(ADMIN, "7").id == "7"
    with pytest.raises(NotFound) as others:
        jobs.get(BOB, "7")
    with pytest.raises(NotFound) as none:
        jobs.get(BOB, "99")
    assert others.value.text == none.value.text
    assert jobs.query(BOB, JobQuery()).rows == ()
    assert jobs.query(BOB, JobQuery(owner="alice")) == JobPage()
    assert set(jobs.counts(BOB, JobQuery(owner="alice")).values()) == {0}
    assert jobs.owners(BOB, 10) == []
    assert jobs.owners(ADMIN, 10) == ["alice"]
    assert jobs.counts(ADMIN, JobQuery())[JobTab.RUNNING] == 1
    for action in JobAction:
        with pytest.raises(NotFound):
            jobs.act(BOB, action, ["7"])
    with pytest.raises(NotFound):
        jobs.extend(BOB, "7", None)
    with pytest.raises(NotFound):
        jobs.targets(BOB, ["7"])


def test_a_task_that_is_only_counted_is_said_to_its_owner_alone(world: World) -> None:
    for number in (101, 102):
        tasks = {"array": 100, "tasks": str(number - 101)}
        running(world, number, **tasks)
    follow_queue(world)
    with pytest.raises(NotFound, match=r"^Task 7 of array 100 is not listed\."):
        world.services.jobs.get(ALICE, "100_7")
    for person, shown in (
        (BOB, "100_7"),
        (ALICE, "99_7"),
        (ALICE, "101_7"),
        (ALICE, "_7"),
        (ALICE, "100_7_7"),
    ):
        with pytest.raises(NotFound, match=r"^There is no such job\.$"):
            world.services.jobs.get(person, shown)


def test_many_are_named_by_record_or_array_or_not_at_all(world: World) -> None:
    queue_job(world, 20, array=20, tasks="1-9")
    running(world, 21, array=20, tasks="0")
    queue_job(world, 30)
    follow_queue(world)
    jobs = world.services.jobs
    asked = jobs.targets(ALICE, ["30", "20", "30"])
    assert [(one.id, one.is_array, len(one.jobs)) for one in asked] == [
        ("30", False, 1), ("20", True, 2)
    ]  # fmt: skip
    assert [one.title for one in jobs.targets(ALICE, ["21"])] == ["20_0"]
    with pytest.raises(NotFound, match="Not all"):
        jobs.targets(ALICE, ["30", "31"])


def test_reasons_places_and_ends(world: World) -> None:
    queue_job(world, 7, reason="JobHeldUser")
    queue_job(world, 8, reason="Priority")
    queue_job(world, 9, "FAILED", code=7, start=1, end=2, node="n1")
    follow_queue(world)
    jobs = world.services.jobs
    held = jobs.reason(followed_job(world, "7"))
    assert held is not None
    assert held.advice == "Release it, and it takes its turn."
    assert jobs.ahead_of([followed_job(world, "7"), followed_job(world, "8")]) == {"8": 0}
    assert end_text(world, "9") == "It failed with exit code 7. Its output may say why."
    assert end_text(world, "8") == ""


# Acting


def test_many_jobs_are_cancelled_by_one_command_for_each_owner(world: World) -> None:
    running(world, 7)
    queue_job(world, 8)
    running(world, 9, user="bob")
    queue_job(world, 10, "FAILED", end=5, node="n1", start=3)
    follow_queue(world)
    outcomes = world.services.jobs.act(ADMIN, JobAction.CANCEL, ["7", "8", "9", "10", "7"])
    assert outcomes == [
        JobOutcome("7", True, "Cancelled."),
        JobOutcome("8", True, "Cancelled."),
        JobOutcome("9", True, "Cancelled."),
        JobOutcome("10", False, "Job 10 has ended already."),
    ]
    commands = [line for line in world.slurm.commands if "scancel" in line]
    assert commands == ["alice: scancel --quiet 7 8", "bob: scancel --quiet 9"]
    assert events(world) == [
        ("admin", "job.cancel", "7", "job 7 of alice"),
        ("admin", "job.cancel", "8", "job 8 of alice"),
        ("admin", "job.cancel", "9", "job 9 of bob"),
    ]


def test_the_end_names_who_cancelled_it_here(world: World) -> None:
    job = running(world, 7)
    follow_queue(world)
    assert world.services.jobs.act(ADMIN, JobAction.CANCEL, ["7"])[0].done
    job.state = "CANCELLED by 1003"  # the account that the portal used
    follow_queue(world)
    world.clock.advance(seconds=5)
    world.worker.settle()
    words = "admin (an administrator) cancelled it while it ran."
    assert end_text(world, "7") == words
    world.slurm.requeue(job)
    job.submitted = 60
    follow_queue(world)
    world.slurm.finish(job, "CANCELLED by 1003")
    follow_queue(world)
    world.clock.advance(seconds=5)
    world.worker.settle()
    words = "carol (an administrator) cancelled it before it started."
    assert end_text(world, "7") == words


def test_an_array_one_task_or_all_parts_of_a_heterogeneous_job(world: World) -> None:
    queue_job(world, 20, array=20, tasks="2-9")
    running(world, 21, array=20, tasks="0")
    running(world, 22, array=20, tasks="1")
    queue_job(world, 30, het=30, offset=0)
    queue_job(world, 31, het=30, offset=1)
    follow_queue(world)
    act = world.services.jobs.act
    for given, target in [("21", "20_0"), ("20_1", "20_1"), ("20_5", "20_5"), ("31", "30")]:
        assert act(ALICE, JobAction.CANCEL, [given])[0].done
        assert world.slurm.commands[-1] == f"alice: scancel --quiet {target}"
    assert act(ALICE, JobAction.CANCEL, ["20"]) == [JobOutcome("20", True, "Cancelled.")]
    assert world.slurm.commands[-1] == "alice: scancel --quiet 20"
    assert events(world)[-1] == ("alice", "job.cancel", "20", "job 20")


def test_hold_release_and_requeue(world: World) -> None:
    queue_job(world, 7)
    running(world, 8)
    follow_queue(world)
    act = world.services.jobs.act
    assert act(ALICE, JobAction.HOLD, ["7", "8"]) == [
        JobOutcome("7", True, "On hold."),
        JobOutcome("8", False, "Job 8 has started already, so it cannot be held."),
    ]
    assert act(ALICE, JobAction.RELEASE, ["7"]) == [
        JobOutcome("7", False, "Job 7 is not on hold.")  # as the last poll has it
    ]
    follow_queue(world)
    assert act(ALICE, JobAction.RELEASE, ["7"]) == [JobOutcome("7", True, "Released.")]
    assert act(ALICE, JobAction.REQUEUE, ["7", "8"]) == [
        JobOutcome("7", False, "Job 7 is not running."),
        JobOutcome("8", True, "Requeued."),
    ]
    assert world.slurm.jobs[1].state == "PENDING"
    assert [line[1] for line in events(world)] == ["job.hold", "job.release", "job.requeue"]


def test_an_administrators_hold_is_not_released(world: World) -> None:
    queue_job(world, 7, reason="JobHeldAdmin")
    follow_queue(world)
    (outcome,) = world.services.jobs.act(ALICE, JobAction.RELEASE, ["7"])
    assert outcome.text == "An administrator holds job 7. Ask the administrators."


def test_each_running_task_of_an_array_is_requeued(world: World) -> None:
    queue_job(world, 20, array=20, tasks="2-9")
    running(world, 21, array=20, tasks="0")
    running(world, 22, array=20, tasks="1")
    follow_queue(world)
    assert world.services.jobs.act(ALICE, JobAction.REQUEUE, ["20"])[0].done
    assert world.slurm.commands[-1].endswith("sh requeue 20_1 20_0") or world.slurm.commands[
        -1
    ].endswith("sh requeue 20_0 20_1")


def test_too_many_at_once_name_the_field(world: World) -> None:
    for number in range(1, 52):
        queue_job(world, number)
    follow_queue(world)
    ids = [str(number) for number in range(1, 52)]
    with pytest.raises(InvalidRequest) as caught:
        world.services.jobs.act(ALICE, JobAction.HOLD, ids)
    assert caught.value.errors[0].field == "ids"
    assert caught.value.errors[0].message == "hold at most 50 jobs at once; these are 51"
    assert all(one.done for one in world.services.jobs.act(ALICE, JobAction.CANCEL, ids))
    with pytest.raises(InvalidRequest):
        world.services.jobs.act(ALICE, JobAction.CANCEL, map(str, range(501)))


def test_slurms_refusal_is_the_outcome(world: World) -> None:
    job = queue_job(world, 7)
    running(world, 8)
    follow_queue(world)
    world.slurm.jobs.remove(job)
    (outcome,) = world.services.jobs.act(ALICE, JobAction.HOLD, ["7"])
    assert outcome == JobOutcome("7", False, "Slurm refused it: Invalid job id specified for job 7")
    world.slurm.down = True
    (outcome,) = world.services.jobs.act(ALICE, JobAction.CANCEL, ["8"])
    assert not outcome.done
    assert outcome.text.startswith("Slurm did not cancel the job")
    assert events(world) == []


def test_a_sessions_job_is_left_to_its_page(world: World) -> None:
    world.launch(ALICE, REQUEST)
    follow_queue(world)
    job = followed_job(world, "1")
    assert job.session is not None
    for action in JobAction:
        (outcome,) = world.services.jobs.act(ALICE, action, ["1"])
        assert outcome == JobOutcome(
            "1", False, "Job 1 runs a session. Find it on the Sessions page."
        )
    with pytest.raises(Conflict, match="Sessions page"):
        world.services.jobs.extend(ALICE, "1", None)


# More time


def test_a_sessions_job_ends_in_the_sessions_words(world: World) -> None:
    """To Slurm, the account that the portal uses cancelled it."""
    session = make_ready(world, world.launch(ALICE, REQUEST))
    follow_queue(world)
    world.sessions.stop(ALICE, session.id)
    world.slurm.finish(world.slurm.jobs[0], "CANCELLED by 1003")
    poll_slurm(world)
    follow_queue(world)
    assert end_text(world, "1") == "Ended by alice."


def test_more_time_within_the_limits(operated: World) -> None:
    running(operated, 7)
    follow_queue(operated)
    jobs = operated.services.jobs
    changed = jobs.extend(ALICE, "7", 30)
    assert changed.report.time_limit == 90
    assert changed.report.deadline is not None
    assert jobs.extend(ALICE, "7", "max").report.time_limit == 480
    assert jobs.extensions(followed_job(operated, "7")).offers == ()
    with pytest.raises(InvalidRequest) as caught:
        jobs.extend(ALICE, "7", 1)
    assert caught.value.errors[0].field == "minutes"
    assert [line[1:] for line in events(operated)] == [
        ("job.extend", "7", "30 minutes"),
        ("job.extend", "7", "390 minutes"),
    ]


def test_more_time_for_one_task_leaves_the_others_as_they_are(operated: World) -> None:
    """The last task has the number of its array, by which scontrol would change all of them."""
    running(operated, 21, array=20, tasks="0")
    running(operated, 20, array=20, tasks="1")
    follow_queue(operated)
    jobs = operated.services.jobs
    assert jobs.extend(ALICE, "20_1", 30).report.time_limit == 90
    assert followed_job(operated, "20_0").report.time_limit == 60
    changes = [line for line in operated.slurm.commands if "TimeLimit=" in line]
    assert changes == ["operator: scontrol update JobId=20_1 TimeLimit=90"]
    assert events(operated) == [("alice", "job.extend", "20_1", "30 minutes")]


def test_only_running_jobs_get_more_time(operated: World) -> None:
    queue_job(operated, 7)
    job = running(operated, 8)
    follow_queue(operated)
    jobs = operated.services.jobs
    with pytest.raises(Conflict, match="Only a running job"):
        jobs.extend(ALICE, "7", None)
    operated.slurm.finish(job, "COMPLETED")
    with pytest.raises(Conflict, match="Only a running job"):
        jobs.extend(ALICE, "8", None)
    assert jobs.extensions(followed_job(operated, "7")) == Extensions()


def test_without_an_operator_there_is_no_more_time(world: World) -> None:
    running(world, 7)
    follow_queue(world)
    with pytest.raises(Conflict, match="Time cannot be extended here"):
        world.services.jobs.extend(ALICE, "7", None)
    assert (
        world.services.jobs.extensions(followed_job(world, "7")).why
        == "Time cannot be extended here."
    )


def test_one_extension_of_a_job_at_a_time(operated: World, monkeypatch: pytest.MonkeyPatch) -> None:
    running(operated, 7)
    follow_queue(operated)
    monkeypatch.setattr("portal.services.extending.PATIENCE", 0.0)
    store, now = operated.systems.stores.jobs, operated.clock.now
    assert store.claim("7", now, LEASE)
    with pytest.raises(Conflict, match="This job is being extended right now"):
        operated.services.jobs.extend(ALICE, "7", None)
    store.release_claim("7", now)
    assert operated.services.jobs.extend(ALICE, "7", None).report.time_limit == 120
