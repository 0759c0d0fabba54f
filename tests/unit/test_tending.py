"""More time, and an end to a hold."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from portal.config import Settings
from portal.core.session import Session, State
from portal.core.view import ENDS_SOON, ends_soon, shown_limit
from portal.errors import Conflict, InvalidRequest, NotFound
from portal.reconcile import Reconciler
from tests.fakes import World, make_world
from tests.unit.test_reconcile import get, look
from tests.unit.test_sessions import ADMIN, ALICE, BOB, REQUEST, ready


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal with an operator's account."""
    (tmp_path / "secret_key").write_text("0" * 64)
    directory = {"directory": str(tmp_path), "run": str(tmp_path)}
    slurm = {"operator": "slipway-operator"}
    return make_world(Settings.model_validate({"state": directory, "slurm": slurm}))


def running(world: World) -> Session:
    """A session that runs for an hour at most, where eight are allowed."""
    session = ready(world, world.sessions.launch(ALICE, REQUEST))
    reconciler = Reconciler(world.sessions)
    reconciler.read_partitions()
    reconciler.read_limits()
    look(world)
    return get(world, session)


def test_the_deadline_is_slurms(world: World) -> None:
    session = running(world)
    assert session.deadline is not None and session.started is not None
    assert session.deadline - session.started == timedelta(hours=1)
    assert (session.time_limit, shown_limit(session)) == (None, 60)
    assert not ends_soon(session, world.clock.now)
    assert ends_soon(session, session.deadline - ENDS_SOON)
    found = world.store.ending("alice", session.deadline)
    assert [one.id for one in found] == [session.id]
    assert world.store.ending("alice", session.deadline - timedelta(seconds=1)) == []
    assert world.store.ending("bob", session.deadline) == []


def test_an_extension_is_made_by_the_operator_and_is_absolute(world: World) -> None:
    session = running(world)
    assert world.sessions.extension(session) == 60
    longer = world.sessions.extend(ALICE, session.id)
    assert world.slurm.commands[-1] == "slipway-operator: scontrol update JobId=1 TimeLimit=120"
    assert shown_limit(longer) == 120
    assert shown_limit(world.sessions.extend(ADMIN, session.id, 30)) == 150
    look(world)
    assert shown_limit(get(world, session)) == 150


def test_nobody_gets_more_than_they_could_have_asked_for(world: World) -> None:
    session = running(world)
    with pytest.raises(InvalidRequest) as caught:
        world.sessions.extend(ALICE, session.id, 421)
    assert caught.value.errors[0].field == "minutes"
    assert "480 minutes at most; it can get 420 more" in caught.value.errors[0].message
    world.sessions.extend(ALICE, session.id, 400)
    assert world.sessions.extension(get(world, session)) == 20
    assert shown_limit(world.sessions.extend(ALICE, session.id)) == 480
    assert world.sessions.extension(get(world, session)) == 0
    asked = len(world.slurm.commands)
    with pytest.raises(InvalidRequest, match="it has them already"):
        world.sessions.extend(ALICE, session.id)
    assert not any("update" in line for line in world.slurm.commands[asked:])


def test_only_running_sessions_of_ones_own(world: World) -> None:
    session = running(world)
    with pytest.raises(NotFound):
        world.sessions.extend(BOB, session.id)
    world.slurm.jobs[0].name = "0" * 32  # the number is another job's now
    with pytest.raises(Conflict):
        world.sessions.extend(ALICE, session.id)
    waiting = world.sessions.launch(ALICE, REQUEST)
    with pytest.raises(Conflict):
        world.sessions.extend(ALICE, waiting.id)
    assert world.sessions.extension(waiting) == 0
    assert not any("update" in line for line in world.slurm.commands)


def test_a_job_without_a_limit_needs_none(world: World) -> None:
    session = running(world)
    real = type(world.slurm.jobs[0]).deadline
    world.slurm.jobs[0].limit = "UNLIMITED"
    try:
        type(world.slurm.jobs[0]).deadline = property(lambda _: "N/A")  # type: ignore[assignment]
        look(world)
        assert get(world, session).deadline is None
        with pytest.raises(Conflict):
            world.sessions.extend(ALICE, session.id)
    finally:
        type(world.slurm.jobs[0]).deadline = real  # type: ignore[method-assign]


def test_without_an_operator_nothing_is_offered(tmp_path: Path) -> None:
    directory = {"directory": str(tmp_path), "run": str(tmp_path)}
    world = make_world(Settings.model_validate({"state": directory}))
    session = running(world)
    assert world.sessions.extension(session) == 0
    with pytest.raises(Conflict, match="Ask the administrators"):
        world.sessions.extend(ALICE, session.id)


def test_ones_own_hold_is_taken_away_as_the_owner(world: World) -> None:
    session = world.sessions.launch(ALICE, REQUEST)
    world.slurm.jobs[0].reason = "JobHeldUser"
    look(world)
    released = world.sessions.release(ALICE, session.id)
    assert world.slurm.commands[-1] == "alice: scontrol release 1"
    assert (released.state, released.pending_reason) == (State.PENDING, None)
    asked = len(world.slurm.commands)
    assert world.sessions.release(ALICE, session.id) == released
    assert len(world.slurm.commands) == asked


def test_an_administrators_hold_is_not_taken_away(world: World) -> None:
    session = world.sessions.launch(ALICE, REQUEST)
    world.slurm.jobs[0].reason = "JobHeldAdmin"
    look(world)
    with pytest.raises(Conflict, match="An administrator holds it"):
        world.sessions.release(ALICE, session.id)
    with pytest.raises(NotFound):
        world.sessions.release(BOB, session.id)
