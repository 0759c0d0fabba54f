"""Sessions that the portal has lost are adopted; nobody gets those of others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from portal.core.admin.audit import AuditFilter
from portal.core.auth.person import hash_secret
from portal.core.launch.request import LaunchRequest
from portal.core.session.session import Session, State
from portal.core.session_job.adoption import AdoptMessage
from portal.core.session_job.runner_protocol import Heartbeat
from portal.errors import Gone, SessionUnknown
from portal.services.session.adoption import HEARTBEAT_LIMIT, RECHECK_AFTER
from portal.services.session.evidence import EVIDENCE_LIFETIME
from tests.support.adoption import follow_queue, job_of, job_token, lose_sessions, write_proof
from tests.support.fakes import World
from tests.support.sessions import ALICE, REQUEST, make_ready, poll_slurm
from tests.support.slurm import FakeJob


@pytest.fixture
def lost(world: World) -> FakeJob:
    """The job of a session of alice's that ran when the database was lost."""
    return lose_sessions(world, running(world))


def running(world: World, request: LaunchRequest = REQUEST) -> Session:
    return make_ready(world, world.launch(ALICE, request))


def claim(world: World, job: FakeJob, token: str = "", **changes: Any) -> Session:
    about = json.loads(job.spec)["adoption"]["about"] if job.spec else {}
    message = {"job_id": str(job.id), "node": job.node, "about": about} | changes
    token = token or job_token(job)
    return world.services.adoption.claim(job.name, token, AdoptMessage.model_validate(message))


def refused(world: World, job: FakeJob, token: str = "", **changes: Any) -> None:
    with pytest.raises(SessionUnknown):
        claim(world, job, token, **changes)


def journal(world: World) -> list[str]:
    found = world.systems.stores.administration.events(AuditFilter(), 100, None)
    return [event.target for event in found if event.action == "session.adopt"]


def test_a_running_session_is_taken_in_with_what_slurm_says(world: World, lost: FakeJob) -> None:
    lost.tres, lost.limit = "cpu=2,mem=3G,node=1,billing=2", "2:00:00"
    session = claim(world, lost)
    assert (session.id, session.owner, session.job_id) == (lost.name, "alice", str(lost.id))
    assert (session.cpus, session.memory_mb, session.time_limit) == (2, 3072, 120)
    assert (session.account, session.qos, session.partition) == ("research", "normal", "main")
    assert (session.environment, session.version) == ("python", REQUEST.version or "3.13")
    assert (session.state, session.node) == (State.STARTING, "n1")
    # It goes on as any session: its gateway calls, and its end is Slurm's.
    assert make_ready(world, session).state is State.RUNNING
    poll_slurm(world)
    world.slurm.finish(lost, "COMPLETED")
    poll_slurm(world)
    found = world.store.get(session.id)
    assert found is not None
    assert found.state is State.FINISHED
    with pytest.raises(Gone):
        claim(world, lost)


def test_taking_in_is_idempotent_and_in_the_journal_once(world: World, lost: FakeJob) -> None:
    first = claim(world, lost)
    assert claim(world, lost).id == first.id
    assert journal(world) == [first.id]
    assert len(world.store.live()) == 1
    world.services.adoption.adopt_waiting()
    (job,) = world.systems.stores.jobs.get_many([str(lost.id)])
    assert job.session == first.id


def test_an_adopted_session_is_not_ended_for_having_started_long_ago(
    world: World, lost: FakeJob
) -> None:
    world.clock.advance(hours=20)
    follow_queue(world)
    session = claim(world, lost)
    for _ in range(3):
        poll_slurm(world)
    found = world.store.get(session.id)
    assert found is not None
    assert found.state is State.STARTING


def test_a_session_that_an_older_backup_has_waiting_is_not_ended(world: World) -> None:
    """It started after the backup, and hours ago: the portal has not waited for it at all."""
    session = world.launch(ALICE, REQUEST)
    world.slurm.start(world.slurm.jobs[0])
    world.clock.advance(hours=5)
    for _ in range(3):
        poll_slurm(world)
    found = world.store.get(session.id)
    assert found is not None
    assert found.state is State.STARTING
    world.clock.advance(minutes=16)
    poll_slurm(world)
    assert world.store.get(session.id).state is State.ENDING  # type: ignore[union-attr]


def test_nobody_else_gets_her_session(world: World, lost: FakeJob) -> None:
    """Another user knows all that the queue shows: its name, number and node."""
    refused(world, lost, "bobs-token")
    # A proof in his own home, and a job of his own with the name of hers.
    write_proof(world, "bob", lost.name, "bobs-token")
    forged = replace(lost, id=lost.id + 1, user="bob", spec=lost.spec)
    world.slurm.jobs.append(forged)
    follow_queue(world)
    world.clock.advance(seconds=EVIDENCE_LIFETIME.total_seconds())
    refused(world, lost, "bobs-token")
    refused(world, forged, "bobs-token")
    assert world.store.live() == []
    assert claim(world, lost).owner == "alice"
    refused(world, forged, "bobs-token")
    found = world.store.get(lost.name)
    assert found is not None
    assert (found.owner, found.token_hash) == ("alice", hash_secret(job_token(lost)))


def test_a_job_that_only_looks_like_one_becomes_its_own_users(world: World) -> None:
    name = "f" * 32
    job = FakeJob(7, "bob", name, "", "")
    world.slurm.jobs.append(job)
    world.slurm.start(job)
    write_proof(world, "bob", name, "token-of-his")
    follow_queue(world)
    about = {"environment": "python", "owner": "alice", "hub_prefix": "/user/alice/", "cpus": 900}
    session = claim(world, job, "token-of-his", about=about)
    assert (session.owner, session.hub_prefix, session.cpus) == ("bob", "", 1)


@pytest.mark.parametrize(
    "changes", [{"job_id": "99"}, {"node": "n2"}, {"job_id": "1", "node": "n2"}]
)
def test_another_job_or_node_is_refused(
    world: World, lost: FakeJob, changes: dict[str, str]
) -> None:
    refused(world, lost, **changes)


@pytest.mark.parametrize("state", ["COMPLETING", "CANCELLED", "PENDING"])
def test_a_job_that_does_not_run_is_refused(world: World, lost: FakeJob, state: str) -> None:
    """Not even one that was cancelled just now, for a launch that was refused."""
    lost.state = state
    refused(world, lost)


def test_calls_of_strangers_cost_slurm_and_homes_nothing(world: World, lost: FakeJob) -> None:
    world.slurm.commands.clear()
    for number in range(20):
        refused(world, replace(lost, name=f"{number:032x}"))
        refused(world, replace(lost, id=1000 + number))
    assert world.slurm.commands == []
    for number in range(20):
        refused(world, lost, f"guess-{number}")
    assert len(world.slurm.commands) == 2  # squeue and the file, once
    assert claim(world, lost).owner == "alice"


def test_a_session_that_reports_is_not_asked_about(world: World) -> None:
    """Its owner's home is not read for strangers: that would use up the owner's connections."""
    session = running(world)
    job = job_of(world, session.id)
    write_proof(world, "alice", session.id, job_token(job))
    follow_queue(world)
    beat = Heartbeat(cpu_seconds=1, memory_bytes=1)
    world.services.runner_calls.record_usage(session, beat)
    world.slurm.commands.clear()
    refused(world, job, "a-guess")
    assert world.slurm.commands == []
    world.clock.advance(seconds=HEARTBEAT_LIMIT.total_seconds())
    refused(world, job, "a-guess")
    assert len(world.slurm.commands) == 2


def test_a_token_that_the_backup_does_not_have_is_renewed(world: World) -> None:
    session = running(world)
    job = job_of(world, session.id)
    follow_queue(world)
    write_proof(world, "alice", session.id, "the-next-token")
    refused(world, job, "guessed-token")
    world.clock.advance(seconds=EVIDENCE_LIFETIME.total_seconds())
    changed = claim(world, job, "the-next-token")
    assert changed.token_hash == hash_secret("the-next-token")
    assert changed.state is State.RUNNING


def test_sessions_of_one_owner_are_bounded(
    world: World, lost: FakeJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.services.session.adoption.MAX_LIVE_SESSIONS", 1)
    claim(world, lost)
    other = replace(lost, id=50, name="e" * 32)
    world.slurm.jobs.append(other)
    write_proof(world, "alice", other.name, job_token(other))
    follow_queue(world)
    refused(world, other)


# Waiting jobs


def waiting(world: World, **changes: Any) -> FakeJob:
    """A session that waits in the queue, and that the portal has lost."""
    session = world.launch(ALICE, REQUEST.model_copy(update=changes))
    return lose_sessions(world, session)


def test_a_waiting_job_is_taken_in_as_waiting(world: World) -> None:
    job = waiting(world, env={"MODE": "fast"}, name="careful")
    world.services.adoption.adopt_waiting()
    session = world.store.get(job.name)
    assert session is not None
    assert (session.state, session.name, session.named) == (State.PENDING, "careful", True)
    assert world.store.env(session.id) == {"MODE": "fast"}
    world.slurm.start(job)
    poll_slurm(world)
    assert make_ready(world, session).state is State.RUNNING
    world.services.adoption.adopt_waiting()
    assert journal(world) == [session.id]


def test_a_job_of_another_portal_is_left_alone(world: World) -> None:
    """A second portal on the same cluster, with a database of its own."""
    job = waiting(world)
    spec = json.loads(job.spec) | {"callback": "https://test-portal:8443"}
    place = f"/home/alice/.slipway/sessions/{job.name}/spec.json"
    world.slurm.files[place] = json.dumps(spec).encode()
    world.services.adoption.adopt_waiting()
    assert world.store.live() == []


def test_forged_waiting_jobs_take_nobodys_place(world: World) -> None:
    """His job has the name of hers, and his home a specification: her job was first."""
    job = waiting(world)
    place = f"/home/bob/.slipway/sessions/{job.name}/spec.json"
    world.slurm.files[place] = job.spec.encode()
    world.slurm.jobs.append(replace(job, id=job.id + 1, user="bob"))
    follow_queue(world)
    world.services.adoption.adopt_waiting()
    (session,) = world.store.live()
    assert (session.owner, session.job_id) == ("alice", str(job.id))


def test_imitations_are_looked_at_seldom_and_some_at_a_time(world: World) -> None:
    for number in range(30):
        world.slurm.jobs.append(FakeJob(100 + number, "bob", f"{number:032x}", "", ""))
    follow_queue(world)

    def looks() -> int:
        world.slurm.commands.clear()
        world.services.adoption.adopt_waiting()
        return sum("spec.json" in line for line in world.slurm.commands)

    assert looks() == 20
    assert looks() == 0
    world.clock.advance(seconds=RECHECK_AFTER.total_seconds())
    assert looks() == 20


def test_a_home_that_is_away_is_looked_at_again(world: World) -> None:
    job = waiting(world)
    world.slurm.homes_away = True
    world.services.adoption.adopt_waiting()
    assert world.store.live() == []
    world.slurm.homes_away = False
    world.clock.advance(minutes=1)
    world.services.adoption.adopt_waiting()
    assert [session.id for session in world.store.live()] == [job.name]
