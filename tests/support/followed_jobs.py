"""Batch jobs that the worker follows in the queue."""

from __future__ import annotations

from portal.core.jobs.job import Job
from tests.support.fakes import World
from tests.support.slurm import FakeJob


def queue_job(world: World, number: int, state: str = "PENDING", **more: object) -> FakeJob:
    """Submit a job by Slurm's own commands."""
    values: dict[str, object] = {"user": "alice", "name": f"job {number}", **more}
    job = FakeJob(number, script="", spec="", state=state, **values)  # type: ignore[arg-type]
    world.slurm.jobs.append(job)
    return job


def follow_queue(world: World, seconds: float = 2) -> None:
    """Let time pass, then poll the queue and store what changed."""
    world.clock.advance(seconds=seconds)
    world.worker.poll()
    world.worker.follow()
    world.worker.read_texts()


def followed_job(world: World, shown_id: str) -> Job:
    """A job that has to exist."""
    found = world.systems.stores.jobs.get(shown_id)
    assert found is not None
    return found
