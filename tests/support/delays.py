"""A user at work while clients are slow or silent, and the delays they cause."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import pytest

from tests.attack.conftest import LoggedIn
from tests.support.apps import Kernel
from tests.support.client import OVER, Api, Browser, Json, http_session
from tests.support.hostile_shells import duration

TRIES = 3
SLOWEST = 3.0
"""Seconds more than on a quiet portal: who waits for a slow client waits for 13 seconds and longer,
and clusters that share two cores delay single requests by a second."""


@dataclass
class UserAtWork:
    """A user who works meanwhile."""

    api: Api
    browser: Browser
    kernel: Kernel
    made: list[str] = field(default_factory=list)

    def _launch(self) -> None:
        self.made.append(self.api.launch(resources={"cpus": 1, "memory": "300m"})["id"])
        self.api.stop(self.made[-1])

    def work(self) -> dict[str, float]:
        """Seconds of each action."""
        return {
            "log-in page": duration(lambda: http_session().get(f"{self.api.cluster.url}/login")),
            "page": duration(lambda: self.browser.get("/sessions")),
            "list": duration(self.api.list),
            "launch": duration(self._launch),
            "kernel": duration(lambda: self.kernel.value("print(1 + 1)")),
        }

    def rest(self) -> None:
        """Wait until Slurm has its cores back."""
        for session in self.made:
            self.api.wait_state(session, *OVER, seconds=120)
        self.made.clear()


@pytest.fixture(scope="module")
def worker(researcher: Api, session: Json, logged_in: LoggedIn) -> UserAtWork:
    """Alice, with an open notebook."""
    kernel = Kernel(researcher.open(session["id"], "jupyterlab"))
    return UserAtWork(researcher, logged_in("alice"), kernel)


@pytest.fixture(scope="module")
def usual(worker: UserAtWork) -> dict[str, float]:
    """Medians of the seconds of each action on a quiet portal."""
    rounds = [worker.work() for _ in range(TRIES)]
    worker.rest()
    return {name: statistics.median(each[name] for each in rounds) for name in rounds[0]}


def slower(rounds: list[dict[str, float]], usual: dict[str, float]) -> list[str]:
    """The actions whose median is above that of a quiet portal."""
    return [
        action
        for action, quiet in usual.items()
        if statistics.median(each[action] for each in rounds) > max(1.5 * quiet, quiet + SLOWEST)
    ]
