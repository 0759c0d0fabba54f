"""More time: never more than the job's own QOS and account permit, and no extension is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.client import SMALL, Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.hostile_shells import sender

SMALLEST: Json = {"resources": {"cpus": 1, "memory": "300m"}}


@pytest.fixture
def express(cluster: Cluster) -> Iterator[str]:
    """A QOS of five minutes that bob may use."""

    def manage(*words: str) -> None:
        cluster.run("ctl", "sacctmgr", "--immediate", *words, check=False)

    def known() -> bool:
        argv = ["sacctmgr", "-nP", "show", "assoc", "user=bob", "format=qos"]
        return "express" in cluster.run("login", *argv)

    manage("add", "qos", "express")
    manage("modify", "qos", "express", "set", "MaxWall=5", "Flags=DenyOnLimit")
    manage("modify", "user", "bob", "set", "qos+=express")
    wait_for("the QOS", known)
    yield "express"
    manage("modify", "user", "bob", "set", "qos-=express")
    manage("delete", "qos", "express")


def launched(bob: Api, express: str) -> Json:
    """A session of three minutes in the QOS, which the portal soon knows as well."""
    asked = SMALL | SMALLEST | {"time_limit": 3, "qos": express}

    def accepted() -> str | None:
        answer = bob("POST", "/sessions", json=asked)
        return answer.json()["sessions"][0]["id"] if answer.status_code == 201 else None

    session = wait_for("the QOS in the portal", accepted, 90, 1.0)
    bob.launched.append(session)
    return bob.wait_state(session, "RUNNING")


def minutes(cluster: Cluster, job: str) -> int:
    """A job's time limit as Slurm shows it."""
    text = cluster.run("login", "squeue", "--noheader", f"--jobs={job}", "--format=%l").strip()
    days, _, rest = text.rpartition("-")
    parts = [int(part) for part in rest.split(":")]
    hours, mins = (parts[0], parts[1]) if len(parts) == 3 else (0, parts[0])
    return int(days or 0) * 1440 + hours * 60 + mins


@pytest.mark.timeout(180)
def test_the_jobs_own_qos_limits_it(bob: Api, cluster: Cluster, express: str) -> None:
    """M2: the portal extended the job to 5 hours."""
    session = launched(bob, express)
    qos = cluster.run("login", "squeue", "-h", f"--jobs={session['job_id']}", "--format=%q").strip()
    assert qos == express
    cluster.run("login", "sleep", "12")  # the limits are read every ten seconds
    answer = bob("POST", f"/sessions/{session['id']}/extend", json={"minutes": 300})
    assert answer.status_code == 422, answer.text
    assert "5 min at most (QOS express, MaxWall)" in answer.text
    assert minutes(cluster, session["job_id"]) == 3
    bob.ask("POST", f"/sessions/{session['id']}/extend", json={"minutes": 2})
    assert minutes(cluster, session["job_id"]) == 5


def test_a_qos_that_the_owner_has_lost(bob: Api, cluster: Cluster, express: str) -> None:
    """M2: what Slurm is not known to permit is refused with a plain explanation."""
    session = launched(bob, express)
    cluster.run("ctl", "sacctmgr", "--immediate", "modify", "user", "bob", "set", "qos-=express")
    cluster.run("login", "sleep", "12")
    answer = bob("POST", f"/sessions/{session['id']}/extend", json={"minutes": 1})
    assert answer.status_code == 409, answer.text
    assert "so it cannot be extended" in answer.json()["detail"]
    assert minutes(cluster, session["job_id"]) == 3


@pytest.mark.timeout(180)
def test_parallel_extensions_all_count(bob: Api, admin: Api, cluster: Cluster) -> None:
    """E13: four requests of 100 minutes each got 200, and only 200 minutes were added."""
    session = bob.running(time_limit=10, **SMALLEST)
    send = sender(bob, "POST", f"/sessions/{session['id']}/extend", json={"minutes": 100})
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: send(), range(4)))
    statuses = Counter(answer.status_code for answer in answers)
    assert set(statuses) <= {200, 409}, [answer.text for answer in answers]
    assert statuses[200] >= 1
    assert minutes(cluster, session["job_id"]) == 10 + 100 * statuses[200]
    lines = admin.ask("GET", "/journal", params={"action": "session.extend"})["entries"]
    mine = [line for line in lines if line["target"] == session["id"]]
    assert len(mine) == statuses[200]
