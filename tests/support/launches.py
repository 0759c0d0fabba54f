"""Launches of several sessions."""

from __future__ import annotations

from portal.core.launch.request import LaunchRequest, parse_launch
from portal.core.session.session import Session, State
from portal.services.owner_queue import Action
from tests.support.fakes import World

REFUSED = "sbatch: error: Batch job submission failed: AssocMaxSubmitJobLimit\n"


class Later:
    """Keeps actions until they are run."""

    def __init__(self) -> None:
        self.actions: list[Action] = []

    def __call__(self, owner: str, name: str, action: Action) -> None:
        """Keep it."""
        self.actions.append(action)

    def run(self) -> None:
        """Run them."""
        while self.actions:
            self.actions.pop(0)()


def launch_request(count: int = 3, **more: object) -> LaunchRequest:
    """A request for several small sessions."""
    resources = {"cpus": 1, "memory": "600m"}
    body = {"environment": "python", "resources": resources, "count": count, **more}
    return parse_launch(body)


def live_jobs(world: World) -> list[str]:
    """Names of the jobs that wait or run."""
    return [job.name for job in world.slurm.jobs if job.state in ("PENDING", "RUNNING")]


def settle(world: World) -> None:
    """Let the worker poll until everything is settled."""
    for _ in range(6):
        world.clock.advance(seconds=65)
        world.services.reconciler.poll()


def states(world: World, batch: list[Session]) -> list[State]:
    """The stored states of those that exist."""
    stored = [world.store.get(session.id) for session in batch]
    return [session.state for session in stored if session]
