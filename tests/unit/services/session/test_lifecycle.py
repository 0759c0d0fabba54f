"""Extensions of the time limit, and releases of a hold."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from portal.config import Settings
from portal.core.admin.audit import AuditFilter
from portal.core.cluster.extensions import Extensions
from portal.core.cluster.job_reports import JobReport
from portal.core.session.session import Session, State
from portal.core.session.status import ENDS_SOON, ends_soon, shown_limit
from portal.errors import Conflict, InvalidRequest, NotFound, OutcomeUnknown, Unavailable
from portal.services.extending import IN_TIME, LEASE, MOST_WAITING
from tests.support.fakes import World, make_world
from tests.support.sessions import ADMIN, ALICE, BOB, REQUEST, make_ready, poll_slurm, session_now


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal with an operator's account."""
    (tmp_path / "secret_key").write_text("0" * 64)
    directory = {"directory": str(tmp_path), "run": str(tmp_path)}
    slurm = {"operator": "slipway-operator"}
    return make_world(Settings.model_validate({"state": directory, "slurm": slurm}))


def running(world: World) -> Session:
    """A session that runs for an hour at most, where eight are allowed."""
    session = make_ready(world, world.launch(ALICE, REQUEST))
    reconciler = world.worker
    reconciler.read_partitions()
    reconciler.read_limits()
    poll_slurm(world)
    return session_now(world, session)


def offered(world: World, session: Session) -> list[int]:
    """The extensions that the pages offer, in minutes."""
    return [offer.minutes for offer in world.services.lifecycle.extensions(session).offers]


def test_as_long_as_possible(world: World) -> None:
    session = running(world)
    longest = world.services.lifecycle.extend(ALICE, session.id, "max")
    assert shown_limit(longest) == 480
    assert offered(world, longest) == []
    with pytest.raises(InvalidRequest, match="it has them already"):
        world.services.lifecycle.extend(ALICE, session.id, "max")


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


def test_an_extension_is_done_by_the_operator_and_is_absolute(world: World) -> None:
    session = running(world)
    assert offered(world, session) == [60, 240, 420]
    longer = world.services.lifecycle.extend(ALICE, session.id)
    assert world.slurm.commands[-1] == "slipway-operator: scontrol update JobId=1 TimeLimit=120"
    assert shown_limit(longer) == 120
    assert shown_limit(world.services.lifecycle.extend(ADMIN, session.id, 30)) == 150
    poll_slurm(world)
    assert shown_limit(session_now(world, session)) == 150


def test_an_extension_stays_within_the_launch_limits(world: World) -> None:
    session = running(world)
    with pytest.raises(InvalidRequest) as caught:
        world.services.lifecycle.extend(ALICE, session.id, 421)
    assert caught.value.errors[0].field == "minutes"
    assert "8 h at most; it can get 7 h more" in caught.value.errors[0].message
    world.services.lifecycle.extend(ALICE, session.id, 400)
    assert offered(world, session_now(world, session)) == [20]
    assert shown_limit(world.services.lifecycle.extend(ALICE, session.id)) == 480
    none = world.services.lifecycle.extensions(session_now(world, session))
    assert none == Extensions(why="It cannot be extended: sessions here may run 8 h at most.")
    asked = len(world.slurm.commands)
    with pytest.raises(InvalidRequest, match="it has them already"):
        world.services.lifecycle.extend(ALICE, session.id)
    assert not any("update" in line for line in world.slurm.commands[asked:])


def test_only_own_running_sessions_can_be_extended(world: World) -> None:
    session = running(world)
    with pytest.raises(NotFound):
        world.services.lifecycle.extend(BOB, session.id)
    world.slurm.jobs[0].name = "0" * 32  # the number belongs to another job now
    with pytest.raises(Conflict):
        world.services.lifecycle.extend(ALICE, session.id)
    waiting = world.launch(ALICE, REQUEST)
    with pytest.raises(Conflict):
        world.services.lifecycle.extend(ALICE, waiting.id)
    assert world.services.lifecycle.extensions(waiting) == Extensions()
    assert not any("update" in line for line in world.slurm.commands)


def test_a_job_without_a_limit_needs_no_extension(world: World) -> None:
    session = running(world)
    real = type(world.slurm.jobs[0]).deadline
    world.slurm.jobs[0].limit = "UNLIMITED"
    try:
        type(world.slurm.jobs[0]).deadline = property(lambda _: "N/A")  # type: ignore[assignment]
        poll_slurm(world)
        assert session_now(world, session).deadline is None
        with pytest.raises(Conflict):
            world.services.lifecycle.extend(ALICE, session.id)
    finally:
        type(world.slurm.jobs[0]).deadline = real  # type: ignore[method-assign]


def test_without_an_operator_nothing_is_offered(tmp_path: Path) -> None:
    directory = {"directory": str(tmp_path), "run": str(tmp_path)}
    world = make_world(Settings.model_validate({"state": directory}))
    session = running(world)
    assert world.services.lifecycle.extensions(session).why == "Time cannot be extended here."
    with pytest.raises(Conflict, match="Ask the administrators"):
        world.services.lifecycle.extend(ALICE, session.id)


def test_the_owners_hold_is_released_as_the_owner(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.jobs[0].reason = "JobHeldUser"
    poll_slurm(world)
    released = world.services.lifecycle.release(ALICE, session.id)
    assert world.slurm.commands[-1] == "alice: scontrol release 1"
    assert (released.state, released.pending_reason) == (State.PENDING, None)
    asked = len(world.slurm.commands)
    assert world.services.lifecycle.release(ALICE, session.id) == released
    assert len(world.slurm.commands) == asked


def test_an_administrators_hold_is_not_released(world: World) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.jobs[0].reason = "JobHeldAdmin"
    poll_slurm(world)
    with pytest.raises(Conflict, match="An administrator holds it"):
        world.services.lifecycle.release(ALICE, session.id)
    with pytest.raises(NotFound):
        world.services.lifecycle.release(BOB, session.id)


def test_the_jobs_own_account_and_qos_limit_it(world: World) -> None:
    """M2: a job may name any; the owner's default ones permit eight hours."""
    session = running(world)
    for changes in ({"qos": "express"}, {"account": "teaching"}, {"qos": ""}, {"account": ""}):
        job = world.slurm.jobs[0]
        kept = {name: getattr(job, name) for name in changes}
        for name, value in changes.items():
            setattr(job, name, value)
        with pytest.raises(Conflict, match="so it cannot be extended"):
            world.services.lifecycle.extend(ALICE, session.id)
        for name, value in kept.items():
            setattr(job, name, value)
    assert not any("scontrol update" in line for line in world.slurm.commands)
    assert world.services.lifecycle.extend(ALICE, session.id).state is State.RUNNING


def test_concurrent_extensions_are_serialised(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """E13: each read the same limit, and only the last one counted."""
    session = running(world)
    real = world.scheduler.extend

    def slowly(job_id: str, minutes: int) -> None:
        time.sleep(0.05)
        real(job_id, minutes)

    monkeypatch.setattr(world.scheduler, "extend", slowly)

    def extend(_number: int) -> str:
        try:
            world.services.lifecycle.extend(ALICE, session.id, 10)
        except Conflict:
            return "refused"
        return "extended"

    with ThreadPoolExecutor(6) as pool:
        answers = Counter(pool.map(extend, range(6)))
    assert answers["extended"] >= MOST_WAITING
    assert world.slurm.jobs[0].limit == f"{(60 + 10 * answers['extended']) // 60}:" + (
        f"{(60 + 10 * answers['extended']) % 60:02}:00"
    )
    lines = world.services.administration.events(ADMIN, AuditFilter(), 100, None)[0]
    noted = [line.detail for line in lines if line.action == "session.extend"]
    assert noted == ["10 minutes"] * answers["extended"]
    assert session_now(world, session).extending is None


def test_a_crash_during_an_extension_does_not_last(world: World) -> None:
    session = running(world)
    crashed = world.clock()
    world.store.change(session.id, {State.RUNNING}, extending=crashed)
    with pytest.raises(Conflict, match="right now"):
        world.services.lifecycle.extend(ALICE, session.id)
    world.clock.advance(seconds=LEASE.total_seconds() + 1)
    assert shown_limit(world.services.lifecycle.extend(ALICE, session.id)) == 120


def test_a_late_change_has_no_effect(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    session = running(world)
    real = world.scheduler.find

    def late(*words: str) -> list[JobReport]:
        world.clock.advance(seconds=IN_TIME.total_seconds() + 1)
        return real(*words)

    monkeypatch.setattr(world.scheduler, "find", late)
    with pytest.raises(Unavailable, match="nothing was changed"):
        world.services.lifecycle.extend(ALICE, session.id)
    assert world.slurm.jobs[0].limit == "1:00:00"


@pytest.mark.parametrize("arrived", [True, False])
def test_a_lost_response_is_looked_up(
    world: World, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    session = running(world)
    real = world.scheduler.extend

    def lost(job_id: str, minutes: int) -> None:
        if arrived:
            real(job_id, minutes)
        raise OutcomeUnknown("the connection was cut")

    monkeypatch.setattr(world.scheduler, "extend", lost)
    if arrived:
        assert shown_limit(world.services.lifecycle.extend(ALICE, session.id)) == 120
    else:
        with pytest.raises(OutcomeUnknown):
            world.services.lifecycle.extend(ALICE, session.id)
    lines = world.services.administration.events(ADMIN, AuditFilter(), 100, None)[0]
    assert [line.action for line in lines].count("session.extend") == arrived


def test_one_of_concurrent_releases_is_recorded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = world.launch(ALICE, REQUEST)
    world.slurm.jobs[0].reason = "JobHeldUser"
    poll_slurm(world)
    seen = session_now(world, session)
    monkeypatch.setattr(world.services.lifecycle, "_get_session", lambda *_: seen)
    for _ in range(2):  # both saw the hold
        world.services.lifecycle.release(ALICE, session.id)
    lines = world.services.administration.events(ADMIN, AuditFilter(), 100, None)[0]
    assert [line.action for line in lines].count("session.release") == 1


def test_keeping_a_session_that_ended_meanwhile_is_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = running(world)
    monkeypatch.setattr(world.services.lifecycle, "_get_session", lambda *_: session)
    world.sessions.stop(ALICE, session.id)
    with pytest.raises(Conflict, match="over"):
        world.services.lifecycle.keep_alive(ALICE, session.id)


def test_reading_anothers_log_is_recorded_once_in_a_while(world: World) -> None:
    """L8: in the journal, and for the owner."""
    session = running(world)
    world.services.session_logs.read(ALICE, session.id, 0)
    assert session_now(world, session).log_read is None
    for _ in range(5):
        world.services.session_logs.size(ADMIN, session.id)
        world.services.session_logs.read(ADMIN, session.id, 0)
        world.clock.advance(seconds=2)

    def readings() -> list[str]:
        lines = world.services.administration.events(ADMIN, AuditFilter(), 100, None)[0]
        return [line.who for line in lines if line.action == "log.read"]

    assert readings() == ["admin"]
    assert session_now(world, session).log_read_by == "admin"
    world.clock.advance(minutes=11)
    world.services.session_logs.read(ADMIN, session.id, 0)
    assert readings() == ["admin", "admin"]
