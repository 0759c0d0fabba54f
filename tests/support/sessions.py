"""Sessions of unit tests: users, requests, and the steps from launch to ready."""

from __future__ import annotations

import json
from typing import Any

from portal.core.auth.person import Person
from portal.core.launch.request import parse_launch
from portal.core.session.session import Session
from portal.core.session_job.runner_protocol import ReadyMessage
from tests.support.fakes import World

VALID_REQUEST: dict[str, Any] = {
    "environment": "python",
    "resources": {"cpus": 1, "memory": "600m"},
}


def session_now(world: World, session: Session) -> Session:
    """The session as it is now."""
    found = world.store.get(session.id)
    assert found is not None
    return found


def poll_slurm(world: World) -> bool:
    """Let a moment pass, then poll Slurm once."""
    world.clock.advance(seconds=1)
    return world.worker.poll()


ALICE = Person("alice", admin=False, login="a")
BOB = Person("bob", admin=False, login="b")
ADMIN = Person("admin", admin=True, login="c")
REQUEST = parse_launch({"environment": "python", "resources": {"cpus": 1, "memory": "600m"}})


def token_of(world: World) -> str:
    """The secret passed to the newest job's runner."""
    return str(json.loads(world.slurm.jobs[-1].spec)["token"])


def make_ready(world: World, session: Session) -> Session:
    """Start the session's job and let its runner call back."""
    job = world.slurm.jobs[-1]
    world.slurm.start(job)
    known = world.services.runner_calls.authenticate(session.id, token_of(world))
    world.services.runner_calls.mark_ready(
        known, ReadyMessage(job_id=str(job.id), node="n1", port=40000, csr="csr")
    )
    found = world.store.get(session.id)
    assert found is not None
    return found


def poll_all(world: World) -> None:
    """The worker's round of polls."""
    reconciler = world.worker
    reconciler.read_partitions()
    reconciler.read_limits()
    reconciler.poll()
    reconciler.clean()


USAGE_REPORT: dict[str, object] = {
    "cpu_seconds": 1.5,
    "memory_bytes": 123,
    "memory_limit": None,
    "oom_kills": 0,
    "apps": {},
}
