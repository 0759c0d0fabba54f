"""The portal is killed, stopped and restarted: nothing is lost, nothing is done twice."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import Counter

import pytest
import requests

from tests.support.client import SMALL, Api, Json, unanswered
from tests.support.cluster import Cluster, healthy, wait_for
from tests.support.open_apps import Killer, OpenApps, watched_app

TINY: Json = {"resources": {"cpus": 1, "memory": "300m"}}
KILLS = int(os.environ.get("SLIPWAY_KILLS", "10"))
SETTLED = 100.0
"""Seconds after which every launch is settled: 40 until a lost submission is searched for, then one
more attempt.
"""


def _launch_despite(api: Api, killer: Killer, delay: float) -> Json:
    """Launch while the portal is killed, retrying with the same key until it is accepted."""
    key = uuid.uuid4().hex
    blow = threading.Timer(delay, killer.strike)
    blow.start()

    def accepted() -> Json | None:
        headers = {"Idempotency-Key": key}
        try:
            answer = api("POST", "/sessions", json=SMALL | TINY, headers=headers)
        except requests.RequestException:
            return None
        assert answer.status_code in (201, 502, 503, 504), (answer.status_code, answer.text)
        return answer.json()["sessions"][0] if answer.status_code == 201 else None

    session = wait_for("a launch accepted in the end", accepted, 60)
    blow.join()
    api.launched.append(session["id"])
    return session


@pytest.mark.timeout(900)
def test_killed_during_launches(alice: Api, admin: Api, cluster: Cluster) -> None:
    since = cluster.clock()
    sessions, cut_off = [], 0
    for number in range(KILLS):
        wait_for("the portal back", lambda: healthy(cluster), 60)
        killer = Killer(cluster, "web", "worker")
        # From before the request is read until after the job has called back.
        delay = number / KILLS if number < KILLS - 4 else 0.5 * (number - KILLS + 6)
        session = _launch_despite(alice, killer, delay)
        sessions.append(session["id"])
        cut_off += session["job_id"] is None
    print(f"{cut_off} of {KILLS} were accepted with their job's fate unknown")
    assert len(set(sessions)) == KILLS
    wait_for("the portal back", lambda: healthy(cluster), 60)
    wait_for(
        "every launch settled",
        lambda: all(row["job_id"] for row in alice.list() if row["id"] in sessions),
        SETTLED,
        pause=1,
    )
    rows = {row["id"]: row for row in admin.list()}
    jobs = [job for job in cluster.accounted(since) if len(job.name) == 32]
    names = Counter(job.name for job in jobs)
    assert set(sessions) <= set(rows), "an accepted launch is not shown"
    assert set(names) <= set(rows), "a job that no session knows of"
    assert {names[session] for session in sessions} == {1}, names
    new = {name for name, row in rows.items() if row["created"][:19] >= since}
    assert new <= set(names), "a session without a job"
    queued = cluster.queue()
    for job in jobs:
        assert rows[job.name]["job_id"] == job.id == queued[job.name].id
    live = {"PENDING", "STARTING", "RUNNING"}
    assert {row["state"] for row in alice.list() if row["id"] in sessions} <= live


def test_open_apps_survive_an_outage_of_the_portal(alice: Api, cluster: Cluster) -> None:
    open_apps = OpenApps(alice, alice.running()["id"])
    with watched_app(open_apps.lab) as wrong:
        cluster.daemon("stop", "portal", "web", "worker")
        try:
            assert alice("GET", "/me").status_code in (502, 503)
            open_apps.check_unchanged()
            open_apps.reload()
            open_apps.check_unchanged()
        finally:
            cluster.daemon("start", "portal", "worker", "web")
        wait_for("the portal back", lambda: healthy(cluster), 60)
        open_apps.check_unchanged()
    assert not wrong


def test_haproxy_and_portal_restart(alice: Api, cluster: Cluster) -> None:
    session = alice.running()["id"]
    open_apps = OpenApps(alice, session)
    for restart in (
        lambda: cluster.daemon("restart", "portal", "haproxy"),
        lambda: Killer(cluster, "haproxy", "web", "worker").strike(),
        lambda: cluster.ctl("restart", "portal"),
    ):
        restart()
        wait_for("the portal back", lambda: healthy(cluster), 60)
        back = time.monotonic()
        wait_for(
            "access to the app",
            lambda: unanswered(lambda: open_apps.lab.get("/api/status", timeout=5)) is None,
            20,
        )
        assert time.monotonic() - back < 6
        wait_for(
            "access to the terminal",
            lambda: unanswered(lambda: open_apps.shell.get("/token", timeout=5)) is None,
        )
        open_apps.reload()
        open_apps.check_unchanged()
        assert alice.get(session)["state"] in ("RUNNING", "UNKNOWN")
    alice.wait_state(session, "RUNNING")
