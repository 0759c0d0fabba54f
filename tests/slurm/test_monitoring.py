"""Metrics and readiness on a real cluster, while the worker is stopped and started again."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
import requests

from tests.support.client import Api
from tests.support.cluster import Cluster, authority, wait_for

WATCHED = "curl -s -o - -w '\\n%{{http_code}}' 'http://127.0.0.1:9464{path}'"


def ask(cluster: Cluster, path: str) -> tuple[int, str]:
    """Status and text at the listener for monitoring, as a program on the portal's host sees it."""
    text = cluster.shell("portal", WATCHED.format(path=path))
    body, _, status = text.strip().rpartition("\n")
    return int(status), body.strip()


def metric(cluster: Cluster, series: str) -> float:
    """The value of one series; 0 if there is none."""
    status, text = ask(cluster, "/metrics")
    assert status == 200
    found = [line for line in text.splitlines() if line.startswith(f"{series} ")]
    return float(found[0].rpartition(" ")[2]) if found else 0.0


@pytest.fixture
def without_worker(cluster: Cluster) -> Iterator[None]:
    """The worker is stopped."""
    cluster.daemon("stop", "portal", "worker")
    yield
    cluster.daemon("start", "portal", "worker")
    wait_for("the worker", lambda: ask(cluster, "/readyz")[0] == 200, seconds=120)


def test_all_parts_are_ready(cluster: Cluster) -> None:
    status, text = ask(cluster, "/readyz?verbose")
    assert status == 200, text
    parts = json.loads(text)["parts"]
    assert set(parts) == {"database", "worker", "slurm", "haproxy", "disk"}
    public = requests.get(f"{cluster.url}/readyz?verbose", timeout=30, verify=authority() or True)
    assert (public.status_code, public.text) == (200, "ok\n")


def test_what_the_portal_does_is_measured(alice: Api, cluster: Cluster) -> None:
    before = {
        name: metric(cluster, name)
        for name in (
            'slipway_launch_seconds_count{phase="total"}',
            'slipway_slurm_commands_total{command="sbatch",outcome="ok"}',
            'slipway_slurm_commands_total{command="squeue",outcome="ok"}',
            'slipway_logins_total{outcome="refused"}',
        )
    }
    session = alice.launch(resources={"cpus": 1, "memory": "300m"})
    alice.wait_state(session["id"], "RUNNING", seconds=180)
    body = {"username": "alice", "password": "wrong"}
    address = f"{cluster.url}/api/v1/tokens"
    assert (
        requests.post(address, json=body, timeout=30, verify=authority() or True).status_code == 401
    )
    same = [name for name, value in before.items() if not metric(cluster, name) > value]
    assert same == []
    assert metric(cluster, 'slipway_sessions{state="RUNNING"}') >= 1
    assert ask(cluster, "/haproxy-metrics")[1].count("haproxy_frontend_http_requests_total") > 1


def test_the_worker_is_down(alice: Api, cluster: Cluster, without_worker: None) -> None:
    session = alice.launch(resources={"cpus": 1, "memory": "300m"})["id"]
    unknown = wait_for(
        "UNKNOWN", lambda: (now := alice.get(session))["unknown_since"] and now["reason"], 120
    )
    assert unknown["code"] == "WorkerDown"
    assert "background process" in unknown["text"]
    assert "Slurm has not answered" not in unknown["text"]
    silent = (503, "not ready: worker, slurm")
    wait_for("not ready", lambda: ask(cluster, "/readyz") == silent, seconds=120)
    time.sleep(1.5)  # the web's other process may give its last answer for another second
    parts = json.loads(ask(cluster, "/readyz?verbose")[1])["parts"]
    assert "not running" in parts["worker"]["text"]
    assert [name for name, part in parts.items() if part["ok"]] == ["database", "disk", "haproxy"]
    assert metric(cluster, "slipway_worker_age_seconds") > 30
    assert metric(cluster, 'slipway_ready{part="worker"}') == 0
