"""Ends, requeues and holds as the worker sees them, crashes included."""

from __future__ import annotations

import json
import os

import pytest

from portal.core.apps.access import AppState
from portal.core.cluster.usage import SlurmStatus
from portal.core.launch.request import parse_launch
from portal.core.session.pending_reasons import Reason
from portal.core.session.session import Cause, Session, State
from portal.core.session.status import shown_reason
from portal.core.session.transitions import START_TIMEOUT
from portal.core.session_job.runner_protocol import Heartbeat
from portal.errors import Unauthorized
from portal.web.api.models.sessions import SessionContext, SessionOut
from tests.support.fakes import APPS, World
from tests.support.sessions import ALICE, REQUEST, make_ready, poll_slurm, session_now, token_of


def reason(world: World, session: Session) -> Reason | None:
    """The reason shown to the owner."""
    now = world.clock.now
    return shown_reason(session_now(world, session), SlurmStatus(now, None), now)


def not_started(world: World, code: int = 70) -> Session:
    """A session whose job ended before it was ready."""
    session = world.launch(ALICE, REQUEST)
    world.slurm.start(world.slurm.jobs[0])
    world.slurm.finish(world.slurm.jobs[0], "FAILED", code=code)
    poll_slurm(world)
    return session


# The log


def test_a_failed_start_is_explained_by_its_log(world: World) -> None:
    world.slurm.log = b"hello\nSlipway: its image cannot be read on n1 (/x.sif).\n"
    session = not_started(world)
    # E41: before the log has been read, no reason is better than a wrong one.
    assert session_now(world, session).end_text == "The session did not start; finding out why…"
    world.worker.clean()
    ended = session_now(world, session)
    assert ended.end_text == ("The session did not start: its image cannot be read on n1 (/x.sif).")
    assert ended.end_log.startswith("hello\n")
    assert ended.cleaned


def test_a_file_that_is_no_log_is_ignored_without_delay(world: World) -> None:
    """E40: a FIFO in place of the log was read repeatedly, for ten minutes."""
    session = not_started(world)
    log = world.slurm.root / f"home/alice/.slipway/logs/{session.id}.log"
    log.unlink()
    os.mkfifo(log)
    world.worker.clean()
    ended = session_now(world, session)
    assert ended.cleaned
    assert "which may be full" in (ended.end_text or "")


def test_an_unreadable_log_delays_nothing(world: World) -> None:
    session = not_started(world)
    world.slurm.homes_away = True
    reconciler = world.worker
    reconciler.clean()
    assert session_now(world, session).cause is Cause.START_FAILED
    assert not session_now(world, session).cleaned
    world.slurm.homes_away, world.slurm.log = False, b"FATAL:   no\n"
    world.clock.advance(seconds=1)
    reconciler.clean()
    assert "Apptainer could not open its environment (no)" in (
        session_now(world, session).end_text or ""
    )
    asked = len(world.slurm.commands)
    reconciler.clean()
    assert len(world.slurm.commands) == asked, "nothing is queried twice"


def test_a_log_is_given_up_eventually(world: World) -> None:
    session = not_started(world, code=3)
    world.slurm.homes_away = True
    world.clock.advance(minutes=11)
    world.worker.clean()
    assert session_now(world, session).cleaned
    assert "exit code 3" in (session_now(world, session).end_text or "")


def test_files_that_cannot_be_deleted_are_tried_less_and_less(world: World) -> None:
    """Their owner's account may be gone for good."""
    session = not_started(world)
    world.slurm.homes_away = True
    tried = []
    for second in range(100):
        before = len(world.slurm.commands)
        world.worker.clean()
        if len(world.slurm.commands) > before:
            tried.append(second)
        world.clock.advance(seconds=1)
    assert tried == [0, 1, 3, 7, 15, 31, 63]
    world.slurm.homes_away = False
    world.clock.advance(seconds=40)
    world.worker.clean()
    assert session_now(world, session).cleaned


def test_a_log_may_arrive_late(world: World) -> None:
    session = not_started(world)
    world.worker.clean()
    assert not session_now(world, session).cleaned
    world.clock.advance(seconds=10)
    world.worker.clean()
    assert session_now(world, session).cleaned


def test_sessions_that_ended_well_need_no_log(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.log = b"secret diary\n"
    world.slurm.finish(world.slurm.jobs[0], "COMPLETED")
    poll_slurm(world)
    world.worker.clean()
    assert session_now(world, session).end_log == ""
    assert session_now(world, session).cleaned


def test_the_api_has_the_log_of_a_failure(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.log = b"Killed\n"
    world.slurm.finish(world.slurm.jobs[0], "OUT_OF_MEMORY", code=137)
    poll_slurm(world)
    world.worker.clean()
    context = SessionContext(world.status.slurm_status(), world.clock.now)
    end = SessionOut.of(session_now(world, session), [], [], context).end
    assert end is not None
    assert (end.cause, end.log) == ("out_of_memory", "Killed")


# Who cancelled it


def test_accounting_reports_later_who_cancelled_it(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.accounting_down = True
    world.slurm.finish(world.slurm.jobs[0], "CANCELLED")
    world.clock.advance(seconds=10)
    poll_slurm(world)
    assert session_now(world, session).end_text == "Cancelled with Slurm's own commands."
    world.slurm.accounting_down = False
    world.slurm.jobs[0].state = "CANCELLED by 1003"
    world.worker.ask_who_cancelled()
    assert "by carol (an administrator)" in (session_now(world, session).end_text or "")
    asked = len(world.slurm.commands)
    world.worker.ask_who_cancelled()
    assert len(world.slurm.commands) == asked


def test_accounting_is_queried_for_a_limited_time(world: World) -> None:
    make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.finish(world.slurm.jobs[0], "CANCELLED")
    poll_slurm(world)
    world.clock.advance(days=2)
    asked = len(world.slurm.commands)
    world.worker.ask_who_cancelled()
    assert len(world.slurm.commands) == asked


# Without a callback


def test_a_session_without_a_callback_is_given_up(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.start(world.slurm.jobs[0])
    poll_slurm(world)
    world.clock.advance(seconds=START_TIMEOUT.total_seconds() - 5)
    poll_slurm(world)
    assert session_now(world, session).state is State.STARTING
    world.clock.advance(seconds=10)
    poll_slurm(world)
    assert world.slurm.jobs[0].state == "CANCELLED"
    poll_slurm(world)
    ended = session_now(world, session)
    assert (ended.state, ended.cause) == (State.FAILED, Cause.START_FAILED)
    assert "nothing in it called back" in (ended.end_text or "")


def test_a_silent_node_is_reported(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    poll_slurm(world)
    world.clock.advance(seconds=70)
    assert reason(world, session) is None
    world.services.runner_calls.record_usage(
        session_now(world, session), Heartbeat(cpu_seconds=1.0, memory_bytes=1)
    )
    world.clock.advance(seconds=70)
    assert reason(world, session) is None
    world.clock.advance(seconds=10)
    found = reason(world, session)
    assert found is not None
    assert (found.code, session_now(world, session).state) == ("NodeSilent", State.RUNNING)


# Apps


def test_a_failed_app_has_its_reason(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.apps.open_app(ALICE, session.id, "notebook")
    # The heartbeat may arrive before the report.
    world.reports.note_app(session, "jupyterlab", AppState.FAILED)
    message = "jupyterlab ended before it answered (exit code 3)"
    world.reports.note_app(session, "jupyterlab", AppState.FAILED, message, "no such module")
    world.reports.note_app(session, "jupyterlab", AppState.FAILED)
    opened = world.apps.opened(session.id)
    context = SessionContext(world.status.slurm_status(), session.created)
    shown = SessionOut.of(session, list(APPS.values()), opened, context)
    lab, notebook, terminal, *_ = shown.apps
    assert lab.message == "JupyterLab did not start: it ended with exit code 3."
    assert (lab.state, lab.log) == ("failed", "no such module")
    assert notebook.message.startswith("Notebook did not start")
    assert (terminal.state, terminal.message, terminal.log) == (None, "", "")


# Requeued


def requeued(world: World) -> Session:
    """A session with an open app, whose job was requeued."""
    request = parse_launch(REQUEST.model_dump(mode="json") | {"env": {"KEPT": "treasure"}})
    session = make_ready(world, world.launch(ALICE, request))
    link = world.apps.open_app(ALICE, session.id, "terminal")
    world.reports.note_app(session, "terminal", AppState.READY)
    world.gate.enter(link.label, link.ticket)
    assert world.routes.map
    poll_slurm(world)
    world.slurm.requeue(world.slurm.jobs[0])
    return session


def test_a_requeued_session_restarts(world: World) -> None:
    session = requeued(world)
    old = token_of(world)
    poll_slurm(world)
    back = session_now(world, session)
    assert (back.state, back.restarts, back.requeued) == (State.PENDING, 1, world.clock.now)
    assert (back.node, back.address, back.port, back.started, back.ready) == (None,) * 5
    assert world.routes.map == {}
    found = reason(world, session)
    assert found is not None
    assert "put it back into the queue at 12:00 UTC" in found.text
    with pytest.raises(Unauthorized):
        world.services.runner_calls.authenticate(session.id, old)
    world.worker.prepare_requeued()
    assert len(world.slurm.jobs) == 1
    assert token_of(world) != old
    assert json.loads(world.slurm.jobs[0].spec)["env"] == {"KEPT": "treasure"}
    make_ready(world, session)
    poll_slurm(world)
    assert session_now(world, session).state is State.RUNNING
    assert session_now(world, session).restarts == 1


def test_while_the_old_run_completes_nothing_is_prepared(world: World) -> None:
    session = requeued(world)
    world.slurm.jobs[0].state, world.slurm.jobs[0].start = "COMPLETING", 1
    poll_slurm(world)
    assert session_now(world, session).state is State.ENDING
    assert session_now(world, session).requeued is None
    world.slurm.jobs[0].state, world.slurm.jobs[0].start = "PENDING", 0
    poll_slurm(world)
    assert session_now(world, session).state is State.PENDING
    poll_slurm(world)
    assert session_now(world, session).restarts == 1


def test_a_missing_home_is_retried(world: World) -> None:
    session = requeued(world)
    poll_slurm(world)
    world.slurm.homes_away = True
    world.worker.prepare_requeued()
    assert session_now(world, session).token_hash == ""
    world.slurm.homes_away = False
    world.worker.prepare_requeued()
    assert session_now(world, session).token_hash
    asked = len(world.slurm.commands)
    world.worker.prepare_requeued()
    assert len(world.slurm.commands) == asked
    make_ready(world, session)


def test_a_crash_before_the_new_secret_counts_repeats_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = requeued(world)
    poll_slurm(world)
    with monkeypatch.context() as crash:
        crash.setattr(world.store, "change", lambda *_, **__: 1 / 0)
        world.worker.prepare_requeued()
    assert not session_now(world, session).token_hash
    world.worker.prepare_requeued()
    make_ready(world, session)


def test_an_unobserved_restart_is_a_restart(world: World) -> None:
    session = requeued(world)
    world.slurm.start(world.slurm.jobs[0], "n2")
    poll_slurm(world)
    again = session_now(world, session)
    assert (again.state, again.restarts, again.ready, again.node) == (State.STARTING, 1, None, "n2")


def test_a_session_being_ended_is_not_restarted(world: World) -> None:
    session = requeued(world)
    world.sessions.stop(ALICE, session.id)
    world.slurm.requeue(world.slurm.jobs[0])
    poll_slurm(world)
    assert session_now(world, session).state is State.ENDING


# Held and paused


@pytest.mark.parametrize(
    ("code", "words"),
    [("JobHeldUser", "Its owner holds it."), ("JobHeldAdmin", "An administrator holds it.")],
)
def test_held_sessions_show_by_whom(world: World, code: str, words: str) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.jobs[0].reason = code
    poll_slurm(world)
    found = reason(world, session)
    assert found is not None
    assert (found.code, found.text) == (code, words)


def test_a_requeued_and_held_session_shows_both(world: World) -> None:
    session = requeued(world)
    world.slurm.jobs[0].reason = "JobHeldAdmin"
    poll_slurm(world)
    found = reason(world, session)
    assert found is not None
    assert found.text.endswith("an empty home. An administrator holds it.")


def test_a_paused_session_is_shown_and_continues(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.slurm.jobs[0].state = "SUSPENDED"
    poll_slurm(world)
    world.clock.advance(minutes=5)
    found = reason(world, session)
    assert found is not None
    assert (found.code, session_now(world, session).state) == ("Suspended", State.RUNNING)
    world.slurm.jobs[0].state = "RUNNING"
    poll_slurm(world)
    world.services.runner_calls.record_usage(
        session_now(world, session), Heartbeat(cpu_seconds=1.0, memory_bytes=1)
    )
    assert reason(world, session) is None
