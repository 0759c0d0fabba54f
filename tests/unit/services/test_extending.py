"""Extensions wait for others of the same job, in few threads of a process."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime

import pytest

from portal.errors import Unavailable
from portal.services.extending import MOST_AT_ONCE, Extender
from tests.support.fakes import World

NOW = datetime(2026, 11, 26, tzinfo=UTC)


def test_one_user_with_many_jobs_leaves_threads_to_others(world: World) -> None:
    services, slurm = world.services, world.systems.scheduler
    sessions, jobs = (
        Extender(noun, services.cluster, slurm, world.clock) for noun in ("session", "job")
    )
    with ExitStack() as running:
        for number in range(MOST_AT_ONCE):
            extender = (sessions, jobs)[number % 2]
            running.enter_context(extender.alone(str(number), lambda: NOW, lambda _: None))
        for extender in (sessions, jobs):
            with (
                pytest.raises(Unavailable, match="time limits"),
                extender.alone("another", lambda: NOW, lambda _: None),
            ):
                pass
    with jobs.alone("another", lambda: NOW, lambda _: None):
        pass
