"""Nothing can be stored in the portal's database: sessions go on, and what people read is true."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.client import Api, Browser, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.open_apps import OpenApps, watched_app

DATABASE = "/var/lib/slipway/slipway.db"
AWAY = 45.0
"""Seconds without the database: longer than a runner's and the worker's own patience."""
SECONDS = 180
LOCK = f"""
import sqlite3, sys
held = sqlite3.connect("{DATABASE}", timeout=60, isolation_level=None)
held.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
held.execute("ROLLBACK")
"""
NEW: Json = {"environment": "python"}
SMALL: Json = {"resources": {"cpus": 1, "memory": "300m"}}


@contextmanager
def locked(cluster: Cluster) -> Iterator[None]:
    """Another program holds the database's only lock for writing, until its input ends."""
    words = [str(cluster.control), "exec", "portal", "--", "runuser", "-u", "slipway", "--"]
    process = subprocess.Popen(
        [*words, "/opt/venv/bin/python3", "-c", LOCK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=cluster.environment(),
    )
    assert process.stdin and process.stdout
    try:
        assert process.stdout.readline() == "held\n"
        yield
    finally:
        process.communicate(timeout=60)


@pytest.mark.timeout(900)
def test_the_database_does_not_answer(alice: Api, cluster: Cluster) -> None:
    session = alice.wait_state(alice.launch()["id"], "RUNNING", seconds=SECONDS)
    open_apps = OpenApps(alice, session["id"])
    browser = Browser(cluster, "alice")
    with watched_app(open_apps.lab) as wrong:
        with locked(cluster):
            until = time.monotonic() + AWAY
            # What cannot be stored is not said to be stored.
            answer = alice("POST", "/sessions", json=NEW | SMALL, timeout=90)
            assert answer.status_code in (503, 507), answer.text
            assert "database" in answer.json()["detail"]
            # What is only read is shown, as it was stored last.
            page = browser.get("/sessions", timeout=90)
            assert (page.status_code, session["name"] in page.text) == (200, True)
            assert alice.get(session["id"])["job_id"] == session["job_id"]
            open_apps.check_unchanged()
            while time.monotonic() < until:
                time.sleep(1)
            open_apps.check_unchanged()
        back = wait_for("the portal", lambda: _running(alice, session["id"]), SECONDS, 1)
        assert back["job_id"] == session["job_id"]
    assert not wrong
    assert [one["id"] for one in alice.list(state="running")] == [session["id"]], "launched once"
    alice.wait_state(alice.launch(**SMALL)["id"], "RUNNING", seconds=SECONDS)


def _running(api: Api, session: str) -> Json | None:
    answer = api("GET", f"/sessions/{session}")
    now: Json = answer.json()
    return now if answer.status_code == 200 and now["state"] == "RUNNING" else None
