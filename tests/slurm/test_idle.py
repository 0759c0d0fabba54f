"""Idleness measured by real use: open windows do not count, typing and computing do.

All sessions of this file run side by side under one rule of a minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.slurm.conftest import MakeApi
from tests.support.apps import Kernel, Terminal
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for

MINUTE = 60
TINY: Json = {"resources": {"cpus": 1, "memory": "500m"}}


@pytest.fixture(scope="module")
def admin(make_api: MakeApi) -> Iterator[Api]:
    """The administrator; the rule is removed afterwards."""
    found = make_api("admin")
    yield found
    found.ask("PUT", "/admin/caps", json={})


@pytest.fixture(scope="module")
def bob(make_api: MakeApi) -> Iterator[Api]:
    """Another researcher, since a user may not hold that many cores."""
    found = make_api("bob")
    yield found
    found.clean()


def test_only_use_keeps_a_session(researcher: Api, bob: Api, admin: Api, cluster: Cluster) -> None:
    # Two windows without any input.
    open_only = researcher.running(name="openonly", **TINY)["id"]
    lab = Kernel(researcher.open(open_only, "jupyterlab"))
    lab.connect()
    shell = Terminal(researcher.open(open_only, "terminal"))
    # A kernel that waits, without any window and without CPU use.
    computing = researcher.running(name="computing", **TINY)["id"]
    kernel = Kernel(researcher.open(computing, "jupyterlab"))
    with pytest.raises((AssertionError, TimeoutError)):
        kernel.run("import time; time.sleep(900)", seconds=3)
    kernel.close()
    # A user who types now and then, and a session that its owner keeps by the API alone.
    typed = bob.running(name="typedinto", **TINY)["id"]
    keys = Terminal(bob.open(typed, "terminal"))
    kept = bob.running(name="keptalive", **TINY)["id"]

    admin.ask("PUT", "/admin/caps", json={"idle_minutes": 1})
    assert researcher.get(open_only)["idle_deadline"] is not None
    cluster.ctl("daemon", "restart", "portal", "worker")  # it invents no use, and forgets none

    def ended() -> bool:
        keys.type("x")
        bob.ask("POST", f"/sessions/{kept}/keep")
        return bool(researcher.get(open_only)["state"] in ("FINISHED", "FAILED"))

    wait_for("the end of what is merely open", ended, 5 * MINUTE, 5)
    end = researcher.get(open_only)["end"]
    assert end["cause"] == "idle"
    assert end["text"].startswith("Ended by Slipway: nobody had used it since ")
    # The others have been under the same rule for as long.
    time.sleep(30)
    for api, session in ((researcher, computing), (bob, typed), (bob, kept)):
        keys.type("x")
        bob.ask("POST", f"/sessions/{kept}/keep")
        assert api.get(session)["state"] == "RUNNING", session
    for window in (lab, shell, keys):
        window.close()
    entries = admin.ask("GET", "/journal", params={"action": "session.idle"})["entries"]
    assert [entry["target"] for entry in entries if entry["target"] == open_only] == [open_only]
