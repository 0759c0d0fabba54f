"""Limits and bars are Slurm's own: compared with the output of squeue and scontrol."""

from __future__ import annotations

import random
import re

import pytest

from tests.support.client import OVER, SMALL, Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.slurm_settings import changed_limit

LEARNT = 90
"""Seconds after which the worker has read a changed limit (it polls once a minute)."""
TINY: Json = {"cpus": 1, "memory": "300m"}


def held(cluster: Cluster, user: str) -> tuple[int, int]:
    """Cores and MiB held by a user's jobs in main according to squeue."""
    argv = ["squeue", "--noheader", f"--user={user}", "--partition=main"]
    argv += ["--states=RUNNING,CONFIGURING,COMPLETING,SUSPENDED", "--Format=tres-alloc:200"]
    text = cluster.run("login", *argv)
    cores = sum(int(n) for n in re.findall(r"cpu=(\d+)", text))
    memory = sum(
        int(n) * (1024 if unit == "G" else 1) for n, unit in re.findall(r"mem=(\d+)([MG])", text)
    )
    return cores, memory


def mb(size: str) -> int:
    """A size from the API in MiB."""
    return int(size[:-1]) * {"m": 1, "g": 1024}[size[-1]]


def bars(api: Api) -> tuple[int, int]:
    """Cores and MiB that the bars show as the user's own."""
    found = api.ask("GET", "/usage")
    return found["cpus"]["mine"], mb(found["memory"]["mine"])


def agree(api: Api, cluster: Cluster) -> tuple[int, int] | None:
    """The bars' figures if they equal squeue's before and after."""
    before = held(cluster, api.user)
    shown = bars(api)
    return shown if before == shown == held(cluster, api.user) else None


def group(api: Api, name: str = "main") -> Json | None:
    """One of the available resource groups."""
    found: list[Json] = api.ask("GET", "/resource-groups")["resource_groups"]
    return next((group for group in found if group["name"] == name), None)


def test_bars_equal_slurms_figures_after_launches_and_ends(alice: Api, cluster: Cluster) -> None:
    wait_for("nothing held", lambda: agree(alice, cluster) == (0, 0))
    chance = random.Random(4)
    live: list[str] = []
    for _ in range(14):
        if len(live) == 3 or (live and chance.random() < 0.45):
            gone = live.pop(chance.randrange(len(live)))
            alice.stop(gone)
            alice.wait_state(gone, *OVER)
        else:
            session = alice.launch(resources=TINY)["id"]
            alice.wait_state(session, "RUNNING")
            live.append(session)
        shown = wait_for("bars as squeue says", lambda: agree(alice, cluster), 15)
        assert shown == (len(live), 300 * len(live))
        found = alice.ask("GET", "/usage")["cpus"]
        assert found["allowed"] == 3
        assert found["available"] == 3 - len(live)
    alice.clean()
    wait_for("nothing held", lambda: agree(alice, cluster) == (0, 0), 15)


def test_jobs_from_the_command_line_count_too(bob: Api, cluster: Cluster) -> None:
    script = "#!/bin/sh\n#SBATCH --mem=700 --output=/dev/null --cpus-per-task=2\nsleep 300\n"
    job = cluster.run("login", "sbatch", "--parsable", user="bob", stdin=script).strip()
    try:
        wait_for("the bars", lambda: bars(bob) == (2, 700))
        assert held(cluster, "bob") == (2, 700)
        assert bob.ask("GET", "/usage")["cpus"]["available"] == 1
    finally:
        cluster.run("login", "scancel", job, user="bob")
    wait_for("the bars", lambda: bars(bob) == (0, 0))


def test_a_request_beyond_the_qos_is_refused_by_name(alice: Api, cluster: Cluster) -> None:
    jobs = set(cluster.queue())
    with changed_limit(cluster, "qos normal", "MaxTRESPerJob=cpu=1", "MaxTRESPerJob=cpu=-1"):
        wait_for("the limit", lambda: (g := group(alice)) and g["max_cpus"] == 1, LEARNT, 1.0)
        answer = alice("POST", "/sessions", json=SMALL | {"resources": {**TINY, "cpus": 2}})
        assert answer.status_code == 422
        assert answer.json()["errors"] == [
            {
                "field": "resources.cpus",
                "message": "2 is too many: a session of yours may have 1 core at most "
                "(QOS normal, MaxTRESPerJob)",
            }
        ]
    assert set(cluster.queue()) <= jobs  # Slurm forgets ended ones meanwhile
    answer = alice("POST", "/sessions", json=SMALL | {"resources": {"cpus": 1, "memory": "3200m"}})
    assert answer.json()["errors"] == [
        {
            "field": "resources.memory",
            "message": "3200 MB is too much: you may use 3 GB at once (QOS normal, MaxTRESPerUser)",
        }
    ]
    assert set(cluster.queue()) <= jobs  # Slurm forgets ended ones meanwhile


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("DenyAccounts=research", "main is closed to account research"),
        ("AllowAccounts=root", "main is not for account research"),
    ],
)
def test_only_open_partitions_are_offered(bob: Api, cluster: Cluster, word: str, why: str) -> None:
    # bob has one account; alice could take another one.
    cluster.run("ctl", "scontrol", "update", "PartitionName=main", word)
    try:
        wait_for("one group less", lambda: group(bob) is None, LEARNT, 1.0)
        assert group(bob, "short") is not None
        answer = bob("POST", "/sessions", json=SMALL | {"resource_group": "main"})
        assert answer.status_code == 422
        assert answer.json()["errors"] == [
            {"field": "resource_group", "message": f"{why}; choose one of: short"}
        ]
    finally:
        for back in ("AllowAccounts=ALL", "DenyAccounts=teaching"):
            cluster.run("ctl", "scontrol", "update", "PartitionName=main", back)
    wait_for("the group again", lambda: group(bob) is not None, LEARNT, 1.0)


def test_the_chosen_group_runs_and_limits_the_session(alice: Api, cluster: Cluster) -> None:
    answer = alice("POST", "/sessions", json=SMALL | {"resource_group": "short", "time_limit": 31})
    assert answer.json()["errors"] == [
        {
            "field": "time_limit",
            "message": "31 min is too long: sessions here may run 30 min at most",
        }
    ]
    session = alice.running(resources=TINY, resource_group="short")
    assert session["resource_group"] == "short"
    argv = ["squeue", "--noheader", f"--jobs={session['job_id']}", "--format=%P %l"]
    assert cluster.run("login", *argv).split() == ["short", "15:00"]

    # Held in one group, it also counts towards the QOS limit of both.
    def shown(name: str) -> tuple[int, int]:
        found = alice.ask("GET", "/usage", params={"resource_group": name})["cpus"]
        return found["mine"], found["available"]

    wait_for("the bars of short", lambda: shown("short") == (1, 2))
    wait_for("the bars of main", lambda: shown("main") == (0, 2))
