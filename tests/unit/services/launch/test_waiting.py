"""Launches that wait long in a process of the web application."""

from __future__ import annotations

import pytest

from portal.adapters.ssh.transport import Completed
from portal.core.session.session import Session, State
from portal.errors import DatabaseUnavailable
from portal.services.launch import waiting
from portal.services.session.recovery import MAX_ATTEMPTS
from tests.support.cluster import wait_for
from tests.support.fakes import World
from tests.support.launches import Later, launch_request, live_jobs, states
from tests.support.sessions import ALICE
from tests.support.slurm import CONTACT


def attempts(world: World, batch: list[Session]) -> list[int]:
    stored = [world.store.get(session.id) for session in batch]
    return [session.attempts for session in stored if session]


def wait_long(world: World, minutes: int = 5) -> None:
    """Both the process and the worker live meanwhile."""
    for _ in range(4 * minutes):
        world.clock.advance(seconds=15)
        world.services.waiting_sessions.renew()
        world.services.reconciler.poll()


def test_the_worker_leaves_them_to_a_process_that_lives(world: World, later: Later) -> None:
    batch = world.launch_all(ALICE, launch_request(2))
    commands = len(world.slurm.commands)
    wait_long(world)
    assert states(world, batch) == [State.SUBMITTING] * 2
    assert live_jobs(world) == []
    assert not [c for c in world.slurm.commands[commands:] if "sacct" in c or "--name" in c]
    later.run()
    assert states(world, batch) == [State.PENDING] * 2
    assert attempts(world, batch) == [1, 1]
    wait_long(world)
    assert len(world.slurm.jobs) == 2


def test_the_wait_is_measured(world: World, later: Later, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[tuple[str, float]] = []
    monkeypatch.setattr(
        world.systems.monitors.measures, "launch", lambda *measure: measured.append(measure)
    )
    world.launch_all(ALICE, launch_request(1))
    wait_long(world, 2)
    later.run()
    assert measured == [("submit", 120)]


def test_the_worker_submits_those_of_a_process_that_died(world: World, later: Later) -> None:
    batch = world.launch_all(ALICE, launch_request(2))
    wait_long(world, 2)
    later.actions.clear()
    world.clock.advance(seconds=65)
    world.services.reconciler.poll()
    assert states(world, batch) == [State.PENDING] * 2
    assert attempts(world, batch) == [1, 1]


def test_the_worker_submits_those_of_a_process_that_hangs(world: World, later: Later) -> None:
    batch = world.launch_all(ALICE, launch_request(2))
    wait_long(world, 15)
    assert states(world, batch) == [State.SUBMITTING] * 2
    wait_long(world, 2)
    assert states(world, batch) == [State.PENDING] * 2
    later.run()
    assert len(world.slurm.jobs) == 2


def test_all_attempts_are_made_after_a_wait(
    world: World, later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    [session] = world.launch_all(ALICE, launch_request(1))
    calls = []

    def silent(call: object) -> Completed:
        calls.append(call)
        return Completed(1, b"", CONTACT)

    monkeypatch.setitem(world.slurm.programs, "sbatch", silent)
    for _ in range(2 + MAX_ATTEMPTS):
        world.clock.advance(seconds=65)
        world.services.reconciler.poll()
    assert len(calls) == MAX_ATTEMPTS
    assert states(world, [session]) == [State.FAILED]


def test_what_is_submitted_is_not_renewed(world: World, later: Later) -> None:
    """The worker searches for it a minute after it was submitted, not after a renewal."""
    [session] = world.launch_all(ALICE, launch_request(1))
    world.slurm.lose_answer = True
    later.run()
    stored = world.store.get(session.id)
    assert stored is not None
    world.clock.advance(seconds=50)
    world.services.waiting_sessions.add([session.id])
    world.services.waiting_sessions.renew()
    renewed = world.store.get(session.id)
    assert renewed is not None
    assert renewed.submitted == stored.submitted


def test_in_a_thread(
    world: World, later: Later, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waiting, "RENEWAL_SECONDS", 0.01)
    [session] = world.launch_all(ALICE, launch_request(1))
    renew, faults = world.services.waiting_sessions.renew, [DatabaseUnavailable(), ValueError("x")]

    def fail_first() -> None:
        if faults:
            raise faults.pop()
        renew()

    monkeypatch.setattr(world.services.waiting_sessions, "renew", fail_first)
    world.clock.advance(seconds=30)
    world.services.waiting_sessions.start()

    def is_renewed() -> bool:
        stored = world.store.get(session.id)
        return stored is not None and stored.submitted == world.clock.now

    wait_for("its renewal", is_renewed, 10, 0.01)
    world.services.waiting_sessions.remove([session.id])
    assert "renewing sessions" in caplog.text
