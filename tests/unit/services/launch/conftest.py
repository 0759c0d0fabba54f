"""Fixtures of launches."""

from __future__ import annotations

import pytest

from portal.services.launch.submissions import Submissions
from tests.support.fakes import World
from tests.support.launches import Later


@pytest.fixture
def later(world: World) -> Later:
    """A world whose submissions all take too long."""
    queue = Later()
    world.services.launcher._submissions = Submissions(queue, wait=0)
    return queue
