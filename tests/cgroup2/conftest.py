"""Tests in a virtual machine with cgroup v2 only: `make test-cgroup2`.

tests/cgroup2/machine.sh boots it. Without KVM its processors are emulated in software, ten times
slower than real ones, so everything has more time here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import client
from tests.support.client import OVER, Api, Json, login
from tests.support.cluster import Cluster, healthy, wait_for

SLOW = 900.0


class Machine(Cluster):
    """The cluster's machines in the virtual machine."""

    control = Path(__file__).with_name("machine.sh")

    def attempt(
        self, *words: str, stdin: str = "", seconds: float = SLOW
    ) -> subprocess.CompletedProcess[str]:
        """Run machine.sh; commands have more time."""
        return super().attempt(*words, stdin=stdin, seconds=max(seconds, SLOW))


class Patient(Api):
    """An API client that waits as long as emulation takes."""

    def wait_state(self, session: str, *states: str, seconds: float = SLOW) -> Json:
        """Wait until a session is in one of the states."""
        return super().wait_state(session, *states, seconds=max(seconds, SLOW))


@pytest.fixture(scope="session", autouse=True)
def patience() -> Iterator[None]:
    """Give requests more time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "TIMEOUT", 300.0)
        yield


@pytest.fixture(scope="session")
def cluster(patience: None) -> Cluster:
    """The running cluster, once the portal answers and Slurm's node is up."""
    found = Machine.from_environment()
    booted = ["exec", "portal", "--", "true"]
    wait_for("the machine", lambda: found.attempt(*booted).returncode == 0, SLOW, pause=2)
    wait_for("a healthy portal", lambda: healthy(found), SLOW, pause=2)
    node = ["sinfo", "--noheader", "--nodes=n1", "--format=%t"]
    wait_for("n1", lambda: "idle" in found.run("login", *node, check=False), SLOW, pause=2)
    return found


@pytest.fixture(scope="session")
def alice(cluster: Cluster) -> Iterator[Patient]:
    """A researcher; her sessions end with the tests."""
    api = Patient(cluster, "alice", login(cluster, "alice"))
    yield api
    for session in api.launched:
        api.stop(session)
    for session in api.launched:
        api.wait_state(session, *OVER)
