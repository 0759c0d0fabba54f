"""Launches whose submission takes longer than their request waits."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from portal.adapters.ssh.transport import Completed
from portal.core.admin.audit import AuditFilter
from portal.core.session.session import Session, State
from portal.core.threads import in_background_thread
from portal.errors import (
    DatabaseUnavailable,
    InvalidRequest,
    OutcomeUnknown,
    PortalError,
    Unavailable,
)
from portal.services.admin.administration import called_from
from portal.services.launch.submissions import Submissions
from portal.services.owner_queue import OwnerQueue, run_now
from portal.services.request_waits import LONG_WAITS
from tests.support.fakes import World
from tests.support.launches import REFUSED, Later, launch_request, live_jobs, settle, states
from tests.support.login_node import Call
from tests.support.sessions import ADMIN, ALICE
from tests.support.slurm import CONTACT

CLIENT = "192.0.2.7"


def test_they_are_answered_and_submitted_later(world: World, later: Later) -> None:
    batch = world.launch_all(ALICE, launch_request(3))
    assert {session.state for session in batch} == {State.SUBMITTING}
    assert live_jobs(world) == []
    later.run()
    assert states(world, batch) == [State.PENDING] * 3
    assert len(live_jobs(world)) == 3


def test_a_late_refusal_is_the_sessions_end(
    world: World, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    with called_from(CLIENT):
        batch = world.launch_all(ALICE, launch_request(2))
    monkeypatch.setitem(world.slurm.programs, "sbatch", lambda _: Completed(1, b"", REFUSED))
    later.run()
    assert states(world, batch) == [State.FAILED] * 2
    journal = world.services.administration.export(ADMIN, AuditFilter())
    refusals = [event.address for event in journal if event.action == "session.refused"]
    assert refusals == [CLIENT] * 2
    end = world.store.get(batch[0].id)
    assert end is not None
    assert end.end_text and "AssocMaxSubmitJobLimit" in end.end_text
    assert live_jobs(world) == []


@pytest.mark.parametrize("first", ["accepted", "lost"])
def test_a_late_refusal_ends_no_session_whose_job_slurm_may_have(
    world: World, later: Later, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """The first of three was submitted, and Slurm's answer was lost there, or at scancel."""
    batch = world.launch_all(ALICE, launch_request(3))
    real, calls = world.slurm.programs["sbatch"], list[Call]()

    def sbatch(call: Call) -> Completed:
        calls.append(call)
        if len(calls) > 1:
            return Completed(1, b"", REFUSED)
        answer = real(call)
        if first == "lost":
            raise OutcomeUnknown("cut")
        return answer

    with monkeypatch.context() as patch:
        patch.setitem(world.slurm.programs, "sbatch", sbatch)
        patch.setitem(world.slurm.programs, "scancel", lambda _: Completed(1, b"", CONTACT))
        later.run()
    assert live_jobs(world) == [batch[0].id]
    assert states(world, batch) == [State.ENDING, State.FAILED, State.FAILED]
    settle(world)
    assert live_jobs(world) == []
    assert states(world, batch)[0] is State.FINISHED


def test_a_late_fault_of_the_database_is_no_refusal_of_slurms(
    world: World, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm has the job, and its id could not be stored."""
    [session] = world.launch_all(ALICE, launch_request(1))
    apply, calls = world.store.apply, list[Any]()

    def fail_second(*args: Any) -> Session | None:
        calls.append(args)
        if len(calls) == 2:
            raise DatabaseUnavailable
        return apply(*args)

    monkeypatch.setattr(world.store, "apply", fail_second)
    later.run()
    assert states(world, [session]) == [State.SUBMITTING]
    settle(world)
    assert states(world, [session]) == [State.PENDING]
    assert live_jobs(world) == [session.id]


def test_a_late_refusal_is_not_lost_by_a_kill(
    world: World, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is killed as soon as the end of the launch is stored."""
    batch = world.launch_all(ALICE, launch_request(2))
    monkeypatch.setitem(world.slurm.programs, "sbatch", lambda _: Completed(1, b"", REFUSED))

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(world.services.launcher._teardown, "cancel", kill)
    with pytest.raises(KeyboardInterrupt):
        later.run()
    monkeypatch.undo()
    settle(world)
    assert states(world, batch) == [State.FAILED] * 2
    for session in batch:
        end = world.store.get(session.id)
        assert end is not None
        assert end.end_text and "AssocMaxSubmitJobLimit" in end.end_text


def test_without_an_answer_the_worker_goes_on(
    world: World,
    later: Later,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    batch = world.launch_all(ALICE, launch_request(2))
    with monkeypatch.context() as patch:
        patch.setitem(world.slurm.programs, "sbatch", lambda _: Completed(1, b"", CONTACT))
        later.run()
    assert f"launch {batch[0].id}: the worker submits what is left: " in caplog.text
    assert states(world, batch) == [State.SUBMITTING] * 2
    settle(world)
    assert states(world, batch) == [State.PENDING] * 2
    assert len(live_jobs(world)) == 2


@pytest.mark.parametrize("seconds", [0, 30])
def test_no_job_remains_of_those_that_were_stopped_meanwhile(
    world: World, later: Later, seconds: int
) -> None:
    [session] = world.launch_all(ALICE, launch_request(1))
    world.services.sessions.stop(ALICE, session.id)
    world.clock.advance(seconds=seconds)
    later.run()
    assert live_jobs(world) == []
    settle(world)
    assert states(world, [session]) == [State.FINISHED]


def test_what_the_worker_has_submitted_is_not_submitted_again(world: World, later: Later) -> None:
    batch = world.launch_all(ALICE, launch_request(2))
    world.clock.advance(seconds=65)
    world.services.reconciler.poll()
    assert len(live_jobs(world)) == 2
    later.run()
    assert sorted(live_jobs(world)) == sorted(session.id for session in batch)


def not_late(error: PortalError) -> None:
    """Every submission is awaited."""
    raise AssertionError(error)


def test_in_threads_of_its_own() -> None:
    queue = OwnerQueue(2)
    queue.start()
    submissions = Submissions(queue)
    assert not in_background_thread()
    assert submissions.run("alice", "a", in_background_thread, not_late)

    def refuse() -> None:
        raise Unavailable("no")

    with pytest.raises(Unavailable):
        submissions.run("alice", "b", refuse, not_late)


def test_a_refusal_after_the_wait_is_handed_over() -> None:
    queue, go, told = OwnerQueue(1), threading.Event(), threading.Event()
    queue.start()

    def refuse() -> None:
        go.wait(10)
        raise InvalidRequest([])

    def late(error: PortalError) -> None:
        told.set()

    assert Submissions(queue, wait=0.01).run("alice", "a", refuse, late) is None
    assert not told.is_set()
    go.set()
    assert told.wait(10)
    assert Submissions(run_now).run("alice", "a", lambda: 7, late) == 7


def test_few_requests_wait_long() -> None:
    go, waiting = threading.Event(), threading.Barrier(LONG_WAITS + 1)
    queue = OwnerQueue(LONG_WAITS)
    queue.start()
    submissions = Submissions(queue, short_wait=0.01)
    results: list[bool | None] = []

    def submit() -> bool:
        waiting.wait(10)
        return go.wait(10)

    def ask(owner: str) -> None:
        results.append(submissions.run(owner, owner, submit, not_late))

    patient = [threading.Thread(target=ask, args=[f"user{n}"]) for n in range(LONG_WAITS)]
    for thread in patient:
        thread.start()
    waiting.wait(10)
    assert submissions.run("alice", "a", lambda: True, not_late) is None
    go.set()
    for thread in patient:
        thread.join()
    assert results == [True] * LONG_WAITS


def test_a_fault_of_ours_fails_the_request() -> None:
    def submit() -> None:
        raise RuntimeError("a fault")

    with pytest.raises(RuntimeError, match="a fault"):
        Submissions(run_now).run("alice", "submit", submit, lambda error: None)
