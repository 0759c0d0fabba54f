"""An outage of Slurm: open apps keep working, no state is invented, nothing is lost."""

from __future__ import annotations

import threading

import pytest

from tests.support.client import SMALL, Api
from tests.support.cluster import Cluster, wait_for
from tests.support.open_apps import OpenApps, watched_app
from tests.support.slurm_settings import short_job_age

AWAY = 40.0
"""Seconds that slurmctld is stopped."""


@pytest.mark.timeout(300)
def test_slurmctld_is_down(alice: Api, cluster: Cluster) -> None:
    session = alice.running()
    doomed = alice.running(resources={"cpus": 1, "memory": "300m"})["id"]
    open_apps = OpenApps(alice, session["id"])
    with watched_app(open_apps.lab) as wrong:
        cluster.daemon("stop", "ctl", "slurmctld")
        away = threading.Event()
        threading.Timer(AWAY, away.set).start()
        try:
            unknown = wait_for(
                "UNKNOWN", lambda: (now := alice.get(session["id"]))["unknown_since"] and now
            )
            assert unknown["state"] == "UNKNOWN"
            assert "has not answered since" in unknown["reason"]["text"]
            refused = alice("POST", "/sessions", json=SMALL)
            assert refused.status_code == 503
            # At once if the worker has noticed the outage, else after sbatch has failed.
            assert "nothing can be launched right now" in refused.json()["detail"]
            # A request to end is kept until Slurm responds.
            alice.stop(doomed)
            open_apps.check_unchanged()
            rows = alice.list()
            away.wait()
            open_apps.check_unchanged()
            assert {row["id"] for row in alice.list()} == {row["id"] for row in rows}
        finally:
            cluster.daemon("start", "ctl", "slurmctld")
        back = alice.wait_state(session["id"], "RUNNING")
        assert (back["job_id"], back["unknown_since"]) == (session["job_id"], None)
        assert alice.wait_state(doomed, "FINISHED")["end"]["text"] == "Ended by alice."
        # Its runner knows of the request already, and may have ended before Slurm could end it.
        over = ("CANCELLED", "COMPLETED")
        wait_for("the job gone", lambda: cluster.queue()[doomed].state in over)
    assert not wrong
    alice.wait_state(alice.launch(resources={"cpus": 1, "memory": "300m"})["id"], "RUNNING")


@pytest.mark.timeout(300)
def test_accounting_is_down_while_a_session_ends(alice: Api, cluster: Cluster) -> None:
    """Gone from the queue and not yet in accounting is not "ended": the true cause comes later."""
    session = alice.running()["id"]
    with short_job_age(cluster):
        alice.wait_state(session, "RUNNING")
        cluster.daemon("stop", "ctl", "slurmdbd")
        cluster.daemon("stop", "portal", "worker")
        try:
            cluster.run("login", "scancel", f"--name={session}", user="alice")
            wait_for("the queue to forget the job", lambda: session not in cluster.queue(), 150)
            cluster.daemon("start", "portal", "worker")

            def is_unknown_to_slurm() -> bool:
                now = alice.get(session)  # until the worker has polled, Slurm counts as silent
                code = (now["reason"] or {}).get("code")
                return (now["state"], code) == ("UNKNOWN", "JobUnknown")

            wait_for("a job that nobody knows", is_unknown_to_slurm)
        finally:
            cluster.daemon("start", "ctl", "slurmdbd")
            cluster.attempt("daemon", "start", "portal", "worker")
        ended = alice.wait_state(session, "FINISHED", seconds=60)
        assert ended["end"] == {
            "cause": "cancelled",
            "text": "Cancelled by alice with Slurm's own commands.",
            "exit_code": ended["end"]["exit_code"],
            "log": "",
            "seen": ended["end"]["seen"],
        }
