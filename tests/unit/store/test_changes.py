"""Counts of changes: which changes count, for whom, and that migrations keep the triggers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from portal.core.auth.person import Person
from portal.core.changes import EVERYBODY
from portal.core.cluster.limits import Association, Limits, Minutes
from portal.core.cluster.rules.site import Site
from portal.core.cluster.usage import Capacity, ClusterUsage
from portal.core.launch.request import LaunchRequest
from portal.core.monitoring import WORKER
from portal.core.session.session import LIVE
from portal.store.changes import ChangeStore
from portal.store.jobs.store import JobStore
from portal.store.tables.changes import install_triggers
from tests.support.fakes import World
from tests.support.job_store import queued_job
from tests.unit.web.conftest import LAUNCH

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
ALICE = Person("alice", False, "")
REQUEST = LaunchRequest.model_validate(LAUNCH)


@pytest.fixture
def changes(world: World) -> ChangeStore:
    """The store."""
    return world.systems.stores.changes


@contextmanager
def changed(changes: ChangeStore, **expected: bool) -> Iterator[None]:
    """Compare which counts rise meanwhile: of alice, bob, everybody, the site, or the use."""

    def read() -> dict[str, int]:
        alice = changes.numbers("alice", NOON)
        others = {name: changes.numbers(name, NOON).person for name in ("bob", EVERYBODY)}
        return {"alice": alice.person, "site": alice.site, "use": alice.use, **others}

    before = read()
    yield
    after = read()
    assert all(after[name] >= before[name] for name in before)
    rose = {
        ("everybody" if name == EVERYBODY else name)
        for name in before
        if after[name] > before[name]
    }
    assert rose == set(expected)


def test_what_no_trigger_counts(changes: ChangeStore) -> None:
    for _ in range(2):
        with changed(changes, alice=True, everybody=True):
            changes.count("alice")


def test_nothing_has_changed_yet(changes: ChangeStore) -> None:
    assert changes.numbers("nobody", NOON).person == 0


def test_a_worker_and_slurm_that_are_silent(world: World, changes: ChangeStore) -> None:
    def silent(**passed: float) -> int:
        return changes.numbers("alice", NOON + timedelta(**passed)).silent

    assert silent(days=1) == 0, "the worker has never run"
    world.systems.stores.heartbeats.beat(WORKER, NOON)
    world.status.note_answer(NOON)
    assert (silent(seconds=12), silent(seconds=13), silent(seconds=16)) == (0, 1, 3)
    world.systems.stores.heartbeats.beat(WORKER, NOON + timedelta(seconds=16))
    assert silent(seconds=16) == 2


def test_sessions_and_their_apps(world: World, changes: ChangeStore) -> None:
    with changed(changes, alice=True, everybody=True):
        [session] = world.launch_all(ALICE, REQUEST)
    with changed(changes):
        world.services.sessions.get(ALICE, session.id)
    with changed(changes, alice=True, everybody=True):
        world.services.sessions.stop(ALICE, session.id)


def test_jobs_of_one_statement_count_once_for_each_owner(
    world: World, changes: ChangeStore
) -> None:
    jobs = JobStore(world.engine)
    with changed(changes, alice=True, bob=True, everybody=True):
        jobs.save([queued_job(1), queued_job(2), queued_job(3, user="bob")], NOON)
    with changed(changes):
        jobs.save([queued_job(1), queued_job(3, user="bob")], NOON)
    with changed(changes, bob=True, everybody=True):
        jobs.leave(["3"], NOON)


def test_the_cluster_and_the_site(world: World, changes: ChangeStore) -> None:
    world.status.note_answer(NOON)
    with changed(changes):
        world.status.note_answer(NOON)
        world.status.note_answer(datetime(2026, 11, 20, 12, 1, tzinfo=UTC))
    with changed(changes, site=True):
        world.status.note_failure(NOON, "no answer")
    world.status.note_answer(NOON)
    with changed(changes, use=True):
        world.status.save_use(ClusterUsage(rooms=(Capacity("main", 8, 8000, 4, 4000),)))
    limits = Limits(
        site=Site(clock=1), associations=(Association("physics", used=Minutes(cpus=1)),)
    )
    with changed(changes, use=True):
        world.status.save_limits(limits)
    with changed(changes):
        world.status.save_limits(replace(limits, site=Site(clock=2)))
    with changed(changes, use=True):
        world.status.save_limits(
            replace(limits, associations=(Association("physics", used=Minutes(cpus=2)),))
        )
    assert world.status.reported().limits == Limits(
        associations=(Association("physics", used=Minutes(cpus=2)),)
    )


def test_triggers_can_be_installed_again(world: World, changes: ChangeStore) -> None:
    with world.engine.begin() as connection:
        install_triggers(connection)
    with changed(changes, alice=True, everybody=True):
        world.launch_all(ALICE, REQUEST)


def test_what_each_heartbeat_changes_is_no_change_to_pages(
    world: World, changes: ChangeStore
) -> None:
    [session] = world.launch_all(ALICE, REQUEST)
    with changed(changes):
        world.store.change(session.id, LIVE, usage_at=NOON, cpu_seconds=5.0)
    with changed(changes, alice=True, everybody=True):
        world.store.change(session.id, LIVE, usage_at=NOON, cpu_percent=50.0)
