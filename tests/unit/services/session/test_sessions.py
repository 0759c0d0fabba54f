"""Session use cases: launch, mark_ready, stop."""

from __future__ import annotations

import pytest

from portal.core.apps.access import AppState
from portal.core.session.session import State
from portal.core.session_job.runner_protocol import Heartbeat, ReadyMessage
from portal.errors import Conflict, Gone, InvalidRequest, NotFound, Unauthorized, Unavailable
from tests.support.fakes import World
from tests.support.sessions import ADMIN, ALICE, BOB, REQUEST, make_ready, token_of


def test_launch_submits_as_the_user_and_keeps_the_secret_out_of_the_script(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    job = world.slurm.jobs[0]
    assert (session.state, session.job_id) == (State.PENDING, "1")
    assert (job.user, job.name) == ("alice", session.id)
    assert token_of(world) not in job.script
    assert all(token_of(world) not in line for line in world.slurm.commands)
    assert token_of(world) not in session.model_dump_json()


def test_the_same_key_gives_the_same_session(world: World) -> None:
    first = world.launch(ALICE, REQUEST, key="k")
    second = world.launch(ALICE, REQUEST, key="k")
    assert first.id == second.id
    assert len(world.slurm.jobs) == 1
    assert world.launch(BOB, REQUEST, key="k").id != first.id


def test_the_same_key_for_another_request_is_refused(world: World) -> None:
    world.launch(ALICE, REQUEST, key="k")
    other = REQUEST.model_copy(update={"name": "different"})
    with pytest.raises(Conflict):
        world.launch(ALICE, other, key="k")


def test_slurms_refusal_names_the_field_and_leaves_nothing(world: World) -> None:
    world.slurm.refuse = "Requested node configuration is not available"
    with pytest.raises(InvalidRequest) as caught:
        world.launch(ALICE, REQUEST, key="k")
    assert caught.value.errors[0].field == "resources"
    assert world.store.live() == []
    assert world.slurm.folders == set()
    world.slurm.refuse = ""
    assert world.launch(ALICE, REQUEST, key="k").state is State.PENDING


def test_a_silent_slurm_is_reported_and_leaves_nothing(world: World) -> None:
    world.slurm.down = True
    with pytest.raises(Unavailable):
        world.launch(ALICE, REQUEST)
    assert world.store.live() == []


def test_a_lost_response_keeps_the_session(world: World) -> None:
    world.slurm.lose_answer = True
    session = world.launch(ALICE, REQUEST)
    assert session.state is State.SUBMITTING
    assert [s.id for s in world.store.live()] == [session.id]


def test_ready_makes_it_running_with_its_route(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    assert session.state is State.RUNNING
    assert (session.node, session.address, session.port) == ("n1", "10.0.0.1", 40000)


def test_ready_is_idempotent(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    assert make_ready(world, session).ready == session.ready


def test_a_verified_node_costs_slurm_nothing(world: World) -> None:
    """L5: each repeated call caused a squeue."""
    session = make_ready(world, world.launch(ALICE, REQUEST))
    asked = len(world.slurm.commands)
    again = world.services.runner_calls.mark_ready(
        session, ReadyMessage(job_id="1", node="n1", port=40001, csr="csr")
    )
    assert again.certificate
    assert world.slurm.commands[asked:] == []
    assert world.store.get(session.id).port == 40001  # type: ignore[union-attr]
    with pytest.raises(Unauthorized):
        world.services.runner_calls.mark_ready(
            session, ReadyMessage(job_id="1", node="n2", port=40001, csr="csr")
        )
    assert len(world.slurm.commands) == asked + 1


@pytest.mark.parametrize("seconds", [1.7e308, 9e11])
def test_no_report_results_in_an_invalid_figure(world: World, seconds: float) -> None:
    """L4: Infinity in the owner's and the administrators' JSON."""
    session = make_ready(world, world.launch(ALICE, REQUEST))
    for used in (0.0, seconds):
        world.clock.advance(seconds=0.001)
        known = world.store.get(session.id)
        assert known is not None
        world.services.runner_calls.record_usage(
            known, Heartbeat.model_construct(cpu_seconds=used, memory_bytes=1)
        )
    known = world.store.get(session.id)
    assert known is not None
    assert known.cpu_percent == 800


def test_ready_needs_the_sessions_own_token(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.launch(BOB, REQUEST)
    with pytest.raises(Unauthorized):
        world.services.runner_calls.authenticate(session.id, token_of(world))  # bob's


@pytest.mark.parametrize(
    "message",
    [
        ReadyMessage(job_id="1", node="n2", port=40000, csr="csr"),  # not the node of that job
        ReadyMessage(job_id="2", node="n1", port=40000, csr="csr"),  # not the job of that session
    ],
)
def test_ready_is_checked_against_slurm(world: World, message: ReadyMessage) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.start(world.slurm.jobs[0])
    with pytest.raises(Unauthorized):
        world.services.runner_calls.mark_ready(session, message)


def test_a_node_whose_address_is_the_portals_own_is_refused(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.start(world.slurm.jobs[0], node="odd")
    with pytest.raises(Unauthorized):
        world.services.runner_calls.mark_ready(
            session, ReadyMessage(job_id="1", node="odd", port=40000, csr="csr")
        )


def test_usage_gives_percent_of_a_core(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.services.runner_calls.record_usage(session, Heartbeat(cpu_seconds=1.0, memory_bytes=1000))
    world.clock.advance(seconds=10)
    fresh = world.store.get(session.id)
    assert fresh is not None
    world.services.runner_calls.record_usage(
        fresh, Heartbeat(cpu_seconds=6.0, memory_bytes=2000, oom_kills=1)
    )
    fresh = world.store.get(session.id)
    assert fresh is not None
    assert (fresh.cpu_percent, fresh.memory_used, fresh.oom_kills) == (50.0, 2000, 1)


def test_a_heartbeat_replaces_a_lost_report_of_an_app(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    world.apps.open_app(ALICE, session.id, "terminal")
    world.services.runner_calls.record_usage(
        session, Heartbeat(cpu_seconds=1.0, memory_bytes=1, apps={"terminal": AppState.READY})
    )
    assert world.access_store.apps(session.id)[0].state is AppState.READY


def test_stop_cancels_and_is_idempotent(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    assert world.sessions.stop(ALICE, session.id).state is State.ENDING
    assert world.slurm.jobs[0].state == "CANCELLED"
    assert world.sessions.stop(ALICE, session.id).state is State.ENDING


def test_stop_with_a_silent_slurm_keeps_the_request(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.down = True
    assert world.sessions.stop(ALICE, session.id).state is State.ENDING


def test_an_ended_session_accepts_no_callbacks(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.sessions.stop(ALICE, session.id)
    with pytest.raises(Gone):
        world.services.runner_calls.authenticate(session.id, token_of(world))


def test_others_do_not_see_it_and_admins_do(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    for action in (world.sessions.get, world.sessions.stop):
        with pytest.raises(NotFound):
            action(BOB, session.id)
    with pytest.raises(NotFound):
        world.services.session_logs.read(BOB, session.id, 0)
    assert world.sessions.get(ADMIN, session.id).id == session.id


def test_an_administrators_stop_runs_as_the_owner_and_is_named(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    stopped = world.sessions.stop(ADMIN, session.id)
    assert stopped.stopped_by == "admin"
    assert "alice: scancel --quiet 1" in world.slurm.commands


def test_the_highest_memory_and_the_files_of_the_home_are_kept(world: World) -> None:
    session = make_ready(world, world.launch(ALICE, REQUEST))
    for memory, files in ((1000, None), (5000, 3), (2000, 2)):
        known = world.store.get(session.id)
        assert known is not None
        size = None if files is None else 10 * files
        report = Heartbeat(cpu_seconds=1.0, memory_bytes=memory, home_files=files, home_bytes=size)
        world.services.runner_calls.record_usage(known, report)
    known = world.store.get(session.id)
    assert known is not None
    assert (known.memory_used, known.memory_peak) == (2000, 5000)
    assert (known.home_files, known.home_bytes) == (2, 20)
