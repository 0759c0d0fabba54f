"""Changes of sessions over time, crashes included."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portal.config import Settings
from portal.core.session.session import Cause, State
from portal.core.session.status import UNKNOWN, shown_reason, shown_state
from portal.errors import Unavailable
from tests.support.fakes import World, make_world
from tests.support.login_node import Program
from tests.support.sessions import ALICE, REQUEST, make_ready, poll_slurm, session_now
from tests.support.slurm import FakeJob, FakeSlurm


def test_pending_running_ended(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.jobs[0].reason = "QOSMaxCpuPerUserLimit"
    poll_slurm(world)
    assert session_now(world, session).pending_reason == "QOSMaxCpuPerUserLimit"
    world.slurm.start(world.slurm.jobs[0])
    poll_slurm(world)
    assert session_now(world, session).state is State.STARTING
    make_ready(world, session)
    poll_slurm(world)
    assert session_now(world, session).state is State.RUNNING
    world.slurm.finish(world.slurm.jobs[0], "COMPLETED")
    poll_slurm(world)
    assert session_now(world, session).state is State.FINISHED


@pytest.mark.parametrize(
    ("word", "state", "cause"),
    [
        ("CANCELLED by 1001", State.FINISHED, Cause.CANCELLED),
        ("TIMEOUT", State.FINISHED, Cause.TIME_LIMIT),
        ("OUT_OF_MEMORY", State.FAILED, Cause.OUT_OF_MEMORY),
        ("NODE_FAIL", State.FAILED, Cause.NODE_FAILURE),
        ("PREEMPTED", State.FAILED, Cause.PREEMPTED),
        ("FAILED", State.FAILED, Cause.FAILED),
    ],
)
def test_the_true_cause(world: World, word: str, state: State, cause: Cause) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.finish(world.slurm.jobs[0], word, code=3)
    poll_slurm(world)
    ended = session_now(world, session)
    assert (ended.state, ended.cause) == (state, cause)


def test_a_job_that_never_answered_failed_to_start(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.start(world.slurm.jobs[0])
    world.slurm.finish(world.slurm.jobs[0], "FAILED", code=255)
    poll_slurm(world)
    assert session_now(world, session).cause is Cause.START_FAILED


def test_jobs_forgotten_by_slurm_are_found_in_accounting(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.finish(world.slurm.jobs[0], "TIMEOUT")
    world.slurm.forgotten.add(1)
    poll_slurm(world)
    assert session_now(world, session).cause is Cause.TIME_LIMIT


def test_not_found_is_not_ended(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.forgotten.add(1)
    world.slurm.accounting_down = True
    poll_slurm(world)
    assert session_now(world, session).state is State.RUNNING
    now, status = world.clock.now, world.status.slurm_status()
    assert shown_state(session_now(world, session), status, now) == UNKNOWN
    reason = shown_reason(session_now(world, session), status, now)
    assert reason is not None
    assert reason.code == "JobUnknown"
    world.slurm.accounting_down = False
    world.slurm.finish(world.slurm.jobs[0], "NODE_FAIL")
    poll_slurm(world)
    assert session_now(world, session).cause is Cause.NODE_FAILURE


def test_another_users_job_of_that_number_changes_nothing(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.jobs[0].user = "bob"
    world.slurm.jobs[0].state = "TIMEOUT"
    poll_slurm(world)
    assert session_now(world, session).state is State.PENDING


def test_silence_is_unknown_and_refuses_launches(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    poll_slurm(world)
    world.slurm.down = True
    assert not poll_slurm(world)
    since = world.clock.now
    world.clock.advance(seconds=20)
    status = world.status.slurm_status()
    assert status.failing_since == since
    assert shown_state(session_now(world, session), status, world.clock.now) == UNKNOWN
    reason = shown_reason(session_now(world, session), status, world.clock.now)
    assert reason is not None
    assert f"{since:%H:%M:%S}" in reason.text
    with pytest.raises(Unavailable):
        world.launch(ALICE, REQUEST)
    world.slurm.down = False
    assert poll_slurm(world)
    shown = shown_state(session_now(world, session), world.status.slurm_status(), world.clock.now)
    assert shown == State.RUNNING


def test_garbage_from_squeue_ends_no_session(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.jobs[0].reason = "a\x1fb"
    assert not poll_slurm(world)
    assert session_now(world, session).state is State.RUNNING


def test_a_job_with_a_lost_response_is_found(world: World) -> None:
    world.slurm.lose_answer = True
    session = world.launch(ALICE, REQUEST)
    world.slurm.lose_answer = False
    poll_slurm(world)
    assert session_now(world, session).state is State.SUBMITTING  # sbatch might still be running
    world.clock.advance(seconds=60)
    poll_slurm(world)
    assert (session_now(world, session).state, session_now(world, session).job_id) == (
        State.PENDING,
        "1",
    )
    assert len(world.slurm.jobs) == 1


def test_a_lost_response_of_an_ended_job(world: World) -> None:
    world.slurm.lose_answer = True
    session = world.launch(ALICE, REQUEST)
    world.slurm.finish(world.slurm.jobs[0], "TIMEOUT")
    world.slurm.forgotten.add(1)
    world.clock.advance(seconds=60)
    poll_slurm(world)
    assert session_now(world, session).cause is Cause.TIME_LIMIT


def test_a_crash_before_sbatch_submits_once_more(world: World) -> None:
    world.slurm.lose_answer = True
    session = world.launch(ALICE, REQUEST)
    world.slurm.jobs.clear()  # it never reached Slurm; the folder exists
    world.slurm.lose_answer = False
    world.clock.advance(seconds=60)
    poll_slurm(world)
    poll_slurm(world)
    assert len(world.slurm.jobs) == 1
    assert session_now(world, session).state is State.PENDING
    assert session_now(world, session).token_hash != session.token_hash
    make_ready(world, session)


def test_it_gives_up_eventually_with_a_reason(world: World) -> None:
    world.slurm.lose_answer = True
    session = world.launch(ALICE, REQUEST)
    for _ in range(4):
        world.slurm.jobs.clear()
        world.clock.advance(seconds=60)
        poll_slurm(world)
    assert session_now(world, session).state is State.FAILED
    assert "three attempts" in (session_now(world, session).end_text or "")


def test_stopping_before_slurm_had_it(world: World) -> None:
    world.slurm.lose_answer = True
    session = world.launch(ALICE, REQUEST)
    world.slurm.jobs.clear()
    world.sessions.stop(ALICE, session.id)
    world.clock.advance(seconds=60)
    poll_slurm(world)
    assert session_now(world, session).state is State.FINISHED
    assert world.slurm.jobs == []


def test_stopping_a_submission_without_a_response(world: World) -> None:
    world.slurm.lose_answer = True
    session = world.launch(ALICE, REQUEST)
    world.sessions.stop(ALICE, session.id)
    world.clock.advance(seconds=60)
    poll_slurm(world)
    poll_slurm(world)
    assert world.slurm.jobs[0].state == "CANCELLED"
    assert session_now(world, session).state is State.FINISHED


def test_a_stop_request_is_repeated(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.down = True
    world.sessions.stop(ALICE, session.id)
    world.slurm.down = False
    world.clock.advance(seconds=10)
    poll_slurm(world)
    assert world.slurm.jobs[0].state == "CANCELLED"
    poll_slurm(world)
    assert session_now(world, session).end_text == "Ended by alice."


def test_files_are_deleted_after_the_end(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.sessions.stop(ALICE, session.id)
    poll_slurm(world)
    world.worker.clean()
    assert world.slurm.folders == set()
    assert session_now(world, session).cleaned


def test_start_requests_that_did_not_arrive_are_repeated(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.runners.unreachable = True
    world.apps.open_app(ALICE, session.id, "terminal")
    world.runners.unreachable = False
    world.clock.advance(seconds=10)
    world.worker.retry_app_starts()
    assert [order["name"] for _, order in world.runners.requests] == ["terminal"]
    world.worker.retry_app_starts()
    assert len(world.runners.requests) == 1


def test_partitions_limit_the_form(world: World) -> None:
    world.worker.read_partitions()
    assert [p.max_cpus for p in world.status.reported().partitions] == [4]


def test_who_cancelled_it_comes_from_accounting(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.finish(world.slurm.jobs[0], "CANCELLED by 1003")
    poll_slurm(world)
    assert (
        session_now(world, session).end_text
        == "Cancelled by carol (an administrator) with Slurm's own commands."
    )
    assert sum("id --name" in line for line in world.slurm.commands) == 1


def test_lagging_accounting_is_waited_for_within_a_limit(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    job = world.slurm.jobs[0]
    world.slurm.finish(job, "CANCELLED")
    running = replace(job, state="RUNNING")
    monkeypatch.setitem(world.slurm.programs, "sacct", sacct_of(world, running))
    poll_slurm(world)
    assert session_now(world, session).state is State.RUNNING
    world.clock.advance(seconds=10)
    poll_slurm(world)
    assert session_now(world, session).cause is Cause.CANCELLED


def test_a_clock_of_slurm_that_is_ahead_delays_no_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    job = world.slurm.jobs[0]
    world.slurm.finish(job, "CANCELLED")
    job.end += 3600
    running = replace(job, state="RUNNING")
    monkeypatch.setitem(world.slurm.programs, "sacct", sacct_of(world, running))
    poll_slurm(world)
    assert session_now(world, session).cause is Cause.CANCELLED


def sacct_of(world: World, job: FakeJob) -> Program:
    """Accounting's command if it has only this job."""
    return FakeSlurm(world.clock, [job]).programs["sacct"]


def test_the_place_in_the_queue(world: World) -> None:
    first = world.launch(ALICE, REQUEST)
    second = world.launch(ALICE, REQUEST)
    poll_slurm(world)
    assert (session_now(world, first).ahead, session_now(world, second).ahead) == (0, 1)
    world.slurm.start(world.slurm.jobs[0])
    poll_slurm(world)
    assert (session_now(world, first).ahead, session_now(world, second).ahead) == (None, 0)


def test_a_reappearing_job_is_recognised(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.forgotten.add(1)
    world.slurm.accounting_down = True
    poll_slurm(world)
    world.slurm.forgotten.clear()
    poll_slurm(world)
    shown = shown_state(session_now(world, session), world.status.slurm_status(), world.clock.now)
    assert shown == State.RUNNING


def test_a_job_with_a_wrong_number_is_found_by_its_name(world: World) -> None:
    """M7: as stored by an earlier version; it must not break the query for everybody."""
    wrong = make_ready(world, world.launch(ALICE, REQUEST))
    other = make_ready(world, world.launch(ALICE, REQUEST))
    world.store.change(wrong.id, {State.RUNNING}, job_id="²")
    world.slurm.finish(world.slurm.jobs[1], "COMPLETED")
    poll_slurm(world)
    assert session_now(world, other).state is State.FINISHED
    world.clock.advance(seconds=61)
    poll_slurm(world)
    assert session_now(world, wrong).job_id == "1"
    assert session_now(world, wrong).lost is None


def test_a_session_without_a_job_can_be_ended(world: World) -> None:
    """M7: it never ended, since "not found" is not "ended"."""
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.jobs.clear()
    poll_slurm(world)
    world.clock.advance(minutes=10)
    poll_slurm(world)
    assert session_now(world, session).state is State.RUNNING
    world.sessions.stop(ALICE, session.id)
    world.clock.advance(minutes=1)
    poll_slurm(world)
    ended = session_now(world, session)
    assert (ended.state, ended.cause) == (State.FINISHED, Cause.CANCELLED)
    assert ended.end_text == "Ended by alice. Slurm knows no job of this session."


def test_a_silent_accounting_ends_nothing(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.forgotten.add(1)
    world.sessions.stop(ALICE, session.id)
    world.slurm.jobs[0].state = "RUNNING"
    world.slurm.accounting_down = True
    poll_slurm(world)
    world.clock.advance(minutes=10)
    poll_slurm(world)
    assert session_now(world, session).state is State.ENDING


def test_work_for_owners_is_left_to_the_queue(settings: Settings) -> None:
    """H3 c: nothing is done as an owner in the thread that polls Slurm."""
    done: list[tuple[str, str]] = []
    world = make_world(
        settings,
        run_for_owner=lambda owner, name, _action: done.append((owner, name.split()[0])),
    )
    session = make_ready(world, world.launch(ALICE, REQUEST))
    lost = world.launch(ALICE, REQUEST)
    world.force(lost.id, state=State.SUBMITTING, job_id=None)
    world.sessions.stop(ALICE, session.id)
    world.slurm.jobs[0].state = "RUNNING"
    world.clock.advance(seconds=61)
    asked = len(world.slurm.commands)
    reconciler = world.worker
    assert reconciler.poll()
    world.slurm.jobs[0].state = "FAILED"
    assert reconciler.poll()
    reconciler.clean()
    assert not [line for line in world.slurm.commands[asked:] if line.startswith("alice:")]
    assert ("alice/cancel", "cancel") in done
    assert ("alice", "settle") in done
