"""Much of everything: what shells print about jobs, long lines of options, tasks of arrays."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import requests

from tests.attack.conftest import LoggedIn
from tests.support.batch_jobs import cancel, sbatch, wait_for_job
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.hostile_shells import duration, hostile_command, sender

OPTIONS = "#!/bin/sh\n#SBATCH " + "a" * 510_000


def test_what_his_scontrol_prints_is_not_searched_for_minutes(
    bob: Api, alice: Api, cluster: Cluster
) -> None:
    """256 KB of "slurm_" took a minute of a process of the portal, which answered nobody then."""
    job = sbatch(cluster, "bob", "true", "--hold", "--output=/dev/null")
    wait_for_job(bob, job, "PENDING")
    flood = "head -c 250000 /dev/zero | sed 's/\\x00/slurm_/g' | head -c 240000; exit 1"
    with hostile_command(cluster, "bob", "scontrol", flood):
        answers: list[Json] = []
        took = duration(
            lambda: answers.append(
                bob.ask("POST", "/jobs/release", 202, json={"ids": [job]}, timeout=90)
            )
        )
    (outcome,) = answers[0]["outcomes"]
    cancel(cluster, "bob")
    assert not outcome["done"]
    assert outcome["text"].startswith("Slurm refused it: slurm_slurm_")
    assert len(outcome["text"]) < 300
    assert took < 5
    assert duration(lambda: alice.ask("GET", "/jobs")) < 2


@pytest.mark.parametrize("where", ["api", "script", "options", "template"])
def test_a_long_line_of_options_is_refused_at_once(
    where: str, bob: Api, logged_in: LoggedIn
) -> None:
    """One word of 500 KB took eight seconds of the portal's processor."""
    his = logged_in("bob")
    form = {"source": "editor", "script": OPTIONS, "key": "k"}
    sends: dict[str, Callable[[], requests.Response]] = {
        "api": lambda: bob("POST", "/jobs", json={"script": OPTIONS, "test_only": True}),
        "script": lambda: his.post("/jobs/new/check", form),
        "options": lambda: his.post(
            "/jobs/new/command", {**form, "script": "#!/bin/sh\n", "options": "a" * 400_000}
        ),
        "template": lambda: bob("PUT", "/job-templates/long", json={"script": OPTIONS}),
    }
    send = sends[where]
    answer = send()
    assert answer.status_code in (413, 422), answer.status_code
    assert "characters in" in answer.text
    assert duration(send) < 2


def test_an_array_of_a_thousand_tasks_is_a_row(
    bob: Api, logged_in: LoggedIn, cluster: Cluster
) -> None:
    """It opens, is counted and cancelled as one, however bob has divided it in Slurm."""
    array = sbatch(cluster, "bob", "true", "--hold", "--array=0-999", "--output=/dev/null")
    wait_for_job(bob, array, "PENDING")
    cluster.run("login", "scontrol", "update", f"JobId={array}_[0-299]", "Nice=5", user="bob")
    his = logged_in("bob")

    def tasks() -> int:
        query: Json = {"state": "pending", "array": array, "limit": 500}
        return len(bob.ask("GET", "/jobs", params=query)["jobs"])

    (row,) = bob.ask("GET", "/jobs", params={"state": "pending"})["jobs"]
    assert row["array"]["states"] == {"PENDING": 1000}
    assert tasks() <= 301
    page = f"/jobs?state=pending&open={array}"
    assert 1 <= his.get(page).text.count('class="task"') <= 20
    assert duration(lambda: his.get(page)) < 1
    many: Json = {"ids": [f"{array}_{task}" for task in range(300)]}
    assert bob("POST", "/jobs/hold", json=many).status_code == 422  # 50 at once
    send = sender(bob, "POST", "/jobs/cancel", json={"ids": [array]})
    assert duration(send) < 5
    wait_for("its end", lambda: tasks() == 0)
