"""Slurm's queue is the only queue: what does not fit waits there, invalid requests do not."""

from __future__ import annotations

from typing import Any

from tests.support.client import SMALL, Api, Json
from tests.support.cluster import Cluster, wait_for

ALLOWED = 3
"""Cores that the QOS permits per user (cluster/bin/make-accounts)."""
TINY: Json = {"cpus": 1, "memory": "300m"}


def _resources(**changes: Any) -> Json:
    return {"resources": {**SMALL["resources"], **changes}}


# Fields that replace those of the valid request -> the field that the response must name.
BAD: list[tuple[Json, str]] = [
    ({"environment": "nosuch"}, "environment"),
    ({"environment": ""}, "environment"),
    ({"environment": "../python"}, "environment"),
    ({"environment": 7}, "environment"),
    ({"environment": None}, "environment"),
    ({"version": "0.1"}, "version"),
    ({"version": "3.13; reboot"}, "version"),
    ({"name": "abc"}, "name"),
    ({"name": "a" * 65}, "name"),
    ({"name": "two words"}, "name"),
    ({"name": "evil\n#SBATCH --uid=0"}, "name"),
    ({"resource_group": "nosuch"}, "resource_group"),
    ({"resource_group": "main --uid=0"}, "resource_group"),
    ({"time_limit": 0}, "time_limit"),
    ({"time_limit": "soon"}, "time_limit"),
    ({"time_limit": 100_000}, "time_limit"),
    ({"resources": "all of them"}, "resources"),
    (_resources(cpus=0), "resources.cpus"),
    (_resources(cpus=-1), "resources.cpus"),
    (_resources(cpus=1.5), "resources.cpus"),
    (_resources(cpus="1"), "resources.cpus"),
    (_resources(cpus=64), "resources.cpus"),
    (_resources(memory="600"), "resources.memory"),
    (_resources(memory=600), "resources.memory"),
    (_resources(memory="1m"), "resources.memory"),
    (_resources(memory="-2g"), "resources.memory"),
    (_resources(memory="9t"), "resources.memory"),
    (_resources(fgpu=0), "resources.fgpu"),
    (_resources(fgpu="1"), "resources.fgpu"),
    (_resources(fgpu=64), "resources.fgpu"),
    (_resources(fgpu=1, gpu_kind="nosuch"), "resources.gpu_kind"),
    ({"command": "id"}, "command"),
    ({"owner": "bob"}, "owner"),
]


def test_sessions_over_the_limit_wait_and_start_by_themselves(alice: Api, cluster: Cluster) -> None:
    sessions = [alice.launch(resources=TINY)["id"] for _ in range(ALLOWED)]
    for session in sessions:
        alice.wait_state(session, "RUNNING")
    surplus = alice.launch(resources=TINY)["id"]

    def reason() -> str:
        return cluster.queue("alice")[surplus].reason

    wait_for("Slurm's reason", lambda: reason() == "QOSMaxCpuPerUserLimit")
    assert cluster.queue()[surplus].user == "alice"
    assert cluster.queue()[surplus].state == "PENDING"
    wait_for("the reason shown", lambda: alice.get(surplus)["reason"]["code"] == reason())
    shown = alice.get(surplus)
    assert shown["state"] == "PENDING"
    assert shown["reason"]["advice"]
    alice.stop(sessions[0])
    alice.wait_state(surplus, "RUNNING")


def test_waiting_session_is_terminated_at_once(alice: Api, cluster: Cluster) -> None:
    cluster.run("login", "scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        session = alice.launch()["id"]
        wait_for("the job in the queue", lambda: session in cluster.queue("alice"))
        shown = wait_for(
            "the reason",
            lambda: (now := alice.get(session))["reason"]["code"] == "PartitionDown" and now,
        )
        assert shown["state"] == "PENDING"
        alice.stop(session)
        ended = alice.wait_state(session, "FINISHED", seconds=10)
        assert ended["end"]["text"] == "Ended by alice."
        assert cluster.queue("alice")[session].state == "CANCELLED"
    finally:
        cluster.run("login", "scontrol", "update", "PartitionName=main", "State=UP")


def test_invalid_input_names_the_field_and_leaves_nothing(alice: Api, cluster: Cluster) -> None:
    jobs, rows = set(cluster.queue()), alice.list()
    wrong = []
    for changes, field in BAD:
        answer = alice("POST", "/sessions", json=SMALL | changes)
        named = [error["field"] for error in answer.json().get("errors", [])]
        if answer.status_code != 422 or field not in named:
            wrong.append((changes, answer.status_code, answer.text))
    for missing in ("environment", "resources"):
        body = {key: value for key, value in SMALL.items() if key != missing}
        answer = alice("POST", "/sessions", json=body)
        if answer.status_code != 422 or answer.json()["errors"][0]["field"] != missing:
            wrong.append((body, answer.status_code, answer.text))
    assert not wrong
    assert alice("POST", "/sessions", data="{").status_code in (400, 415)
    assert alice("POST", "/sessions", json=[SMALL]).status_code == 422
    assert set(cluster.queue()) <= jobs  # Slurm forgets ended ones meanwhile
    assert alice.list() == rows


def test_a_launch_refused_by_slurm_leaves_nothing(alice: Api, cluster: Cluster) -> None:
    """A limit that only Slurm enforces: its refusal becomes the response to the request."""
    limit = "MaxTRESMins=cpu=10"
    cluster.run("ctl", "sacctmgr", "-i", "modify", "user", "alice", "set", limit)
    cluster.run("ctl", "sacctmgr", "-i", "modify", "qos", "normal", "set", "Flags=DenyOnLimit")
    jobs, rows = set(cluster.queue()), alice.list()
    try:
        answer = alice("POST", "/sessions", json=SMALL | {"time_limit": 60})
        assert answer.status_code == 422
        assert "Slurm refused it" in answer.json()["errors"][0]["message"]
        assert set(cluster.queue()) <= jobs  # Slurm forgets ended ones meanwhile
        assert alice.list() == rows
    finally:
        cluster.run("ctl", "sacctmgr", "-i", "modify", "user", "alice", "set", "MaxTRESMins=cpu=-1")
        cluster.run("ctl", "sacctmgr", "-i", "modify", "qos", "normal", "set", "Flags=-1")
