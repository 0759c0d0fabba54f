"""Others' jobs: by every kind of number, alone and in lists, in filters, orders and counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.attack.conftest import LoggedIn
from tests.support.batch_jobs import cancel, sbatch, wait_for_job
from tests.support.client import Api, Json
from tests.support.cluster import Cluster, wait_for
from tests.support.hostile_shells import hostile_command

ACTIONS = ("cancel", "hold", "release", "requeue")
NAME = "hernamesecret"


@dataclass(frozen=True)
class Jobs:
    """Numbers of jobs of alice's, and one of bob's; all but `running` are on hold."""

    plain: str
    array: str
    het: str
    running: str
    his: str

    @property
    def hers(self) -> list[str]:
        """Every number by which Slurm, the pages or the API know one of hers."""
        second = str(int(self.het) + 1)
        return [
            self.plain, self.array, f"{self.array}_1", f"{self.array}_[0-2]", self.running,
            self.het, f"{self.het}+0", f"{self.het}+1", second,
        ]  # fmt: skip


@pytest.fixture(scope="module")
def jobs(researcher: Api, cluster: Cluster) -> Iterator[Jobs]:
    hold = ("--hold", f"--job-name={NAME}", "--output=/dev/null")
    found = Jobs(
        plain=sbatch(cluster, "alice", "true", *hold),
        array=sbatch(cluster, "alice", "true", "--array=0-2", *hold),
        het=sbatch(cluster, "alice", "true", *hold, ":", "--mem=100"),
        running=sbatch(cluster, "alice", "sleep 300", f"--job-name={NAME}"),
        his=sbatch(cluster, "bob", "true", "--hold", "--job-name=his"),
    )
    wait_for_job(researcher, found.running, "RUNNING")
    for number in found.hers:
        wait_for_job(researcher, number, "PENDING", "RUNNING")
    yield found
    for user in ("alice", "bob"):
        cancel(cluster, user)


def states(cluster: Cluster) -> list[str]:
    """All of alice's jobs as Slurm has them: state, reason and time limit."""
    words = ["squeue", "--noheader", "--array", "--user=alice", "--format=%i %T %r %l"]
    return sorted(cluster.run("login", *words).splitlines())


def test_no_number_of_hers_is_known_to_bob(bob: Api, jobs: Jobs, cluster: Cluster) -> None:
    before = states(cluster)
    for number in jobs.hers:
        place = f"/jobs/{number}"
        answers = [
            bob("GET", place),
            bob("GET", f"{place}/output"),
            bob("GET", f"{place}/usage"),
            bob("DELETE", place),
            bob("POST", f"{place}/extend", json={"minutes": 1}),
            *(bob("POST", f"/jobs/{action}", json={"ids": [number]}) for action in ACTIONS),
        ]
        assert [answer.status_code for answer in answers] == [404] * len(answers), number
        assert {answer.json()["detail"] for answer in answers} == {"There is no such job."}, number
    assert states(cluster) == before


@pytest.mark.parametrize("action", ACTIONS)
def test_with_one_of_hers_among_his_nothing_is_done(
    action: str, bob: Api, jobs: Jobs, cluster: Cluster
) -> None:
    before = states(cluster)
    for number in (*jobs.hers, "4000000000"):
        for ids in ([jobs.his, number], [number, jobs.his]):
            answer = bob("POST", f"/jobs/{action}", json={"ids": ids})
            assert answer.status_code == 404, (number, answer.text)
            assert answer.json()["detail"] == "Not all of these jobs exist."
    assert states(cluster) == before
    his = bob.ask("GET", f"/jobs/{jobs.his}")
    assert (his["slurm_state"], his["reason"]["code"]) == ("PENDING", "JobHeldUser")


def test_filters_orders_and_cursors_show_his_own_alone(
    researcher: Api, bob: Api, jobs: Jobs
) -> None:
    def listed(**query: object) -> Json:
        return bob.ask("GET", "/jobs", params=query)

    cursors = [
        (sort, researcher.ask("GET", "/jobs", params={"limit": 1, "sort": sort})["next_cursor"])
        for sort in ("name", "-submitted", "-priority")
    ]
    asked: list[Json] = [
        {"owner": "alice"}, {"q": NAME}, {"array": jobs.array},
        {"owner": "alice", "array": jobs.array}, {"owner": "root"}, {"q": "%"}, {"q": "_" * 13},
        *({"sort": sort, "cursor": cursor} for sort, cursor in cursors if cursor),
        {}, {"limit": 500}, {"state": "pending"}, {"sort": "owner"}, {"sessions": "only"},
    ]  # fmt: skip
    for query in asked:
        owners = {job["owner"] for job in listed(**query)["jobs"]}
        assert owners <= {"bob"}, query
    for query in asked[:5]:
        assert listed(**query)["jobs"] == [], query


def test_pages_count_and_name_his_own_alone(
    logged_in: LoggedIn, researcher: Api, jobs: Jobs
) -> None:
    his = logged_in("bob")
    for query in ({}, {"owner": "alice"}, {"q": NAME}, {"array": jobs.array}, {"open": jobs.array}):
        for page in ("/jobs", "/jobs/rows"):
            text = his.get(page, params={"state": "pending", **query}).text
            assert not [number for number in jobs.hers if f'data-id="{number}"' in text], query
            assert NAME not in text or "q" in query, query
    assert "alice" not in his.get("/jobs?state=pending").text
    assert researcher.ask("GET", f"/jobs/{jobs.running}")["slurm_state"] == "RUNNING"


def test_more_time_for_one_task_changes_no_other(
    researcher: Api, cluster: Cluster, jobs: Jobs
) -> None:
    """The last task has the array's own number: all others were set to its limit, and cut short."""
    array = sbatch(cluster, "alice", "sleep 300", "--array=0-1")
    for task in (0, 1):
        wait_for_job(researcher, f"{array}_{task}", "RUNNING")
    researcher.ask("POST", f"/jobs/{array}_0/extend", json={"minutes": 50})
    researcher.ask("POST", f"/jobs/{array}_1/extend", json={"minutes": 5})
    mine = [line for line in states(cluster) if line.startswith(f"{array}_")]
    cluster.run("login", "scancel", array, user="alice")
    assert mine == [f"{array}_0 RUNNING None 1:00:00", f"{array}_1 RUNNING None 15:00"]


def test_a_shell_that_prints_her_number_leads_nowhere(
    bob: Api, logged_in: LoggedIn, jobs: Jobs, cluster: Cluster, researcher: Api
) -> None:
    """What his shell prints as sbatch's is not his job's number, and does not open hers."""
    lie = f"printf '\\nslipway-sbatch-begins\\n{jobs.plain}\\n'"
    with hostile_command(cluster, "bob", "timeout", lie):
        answer = bob("POST", "/jobs", json={"script": "#!/bin/sh\n"})
    assert answer.status_code == 201, answer.text
    assert answer.json()["job"]["id"] != jobs.plain
    assert bob("GET", f"/jobs/{jobs.plain}").status_code == 404
    page = logged_in("bob").get(f"/jobs/submitted/{jobs.plain}")
    assert NAME not in page.text
    assert logged_in("bob").get(f"/jobs/new?from={jobs.plain}").status_code == 404
    assert bob("POST", "/jobs/cancel", json={"ids": [jobs.plain]}).status_code == 404
    assert researcher.ask("GET", f"/jobs/{jobs.plain}")["owner"] == "alice"


def test_a_job_with_the_name_of_her_session_stays_a_job_of_his(
    session: Json, researcher: Api, bob: Api, admin: Api, cluster: Cluster
) -> None:
    """A session's job is known by its name, which is the session's id."""
    job = sbatch(cluster, "bob", "true", "--hold", f"--job-name={session['id']}")
    his = wait_for_job(bob, job, "PENDING")
    assert (his["session"], his["owner"]) == (None, "bob")
    assert session["name"] not in str(his)
    assert admin.ask("GET", f"/jobs/{job}")["session"] is None
    assert bob.ask("POST", "/jobs/cancel", 202, json={"ids": [job]})["outcomes"][0]["done"]
    assert researcher.get(session["id"])["state"] == "RUNNING"
    hers = wait_for_job(researcher, session["job_id"], "RUNNING")
    assert hers["session"] == session["id"]
    refused = researcher.ask("POST", "/jobs/cancel", 202, json={"ids": [session["job_id"]]})
    assert "Find it on the Sessions page" in refused["outcomes"][0]["text"]


def test_an_administrators_command_runs_as_the_owner(
    admin: Api, bob: Api, cluster: Cluster, jobs: Jobs
) -> None:
    """Bob's scontrol is what an administrator's click runs: as bob, and about his jobs only."""
    seen = "/home/bob/.seen"
    lie = f"id -un >> {seen}; echo '{jobs.plain} 0 '; exit 0"
    with hostile_command(cluster, "bob", "scontrol", lie):
        ids = [jobs.his, jobs.plain]
        answer = admin.ask("POST", "/jobs/release", 202, json={"ids": ids})
    outcomes = {one["id"]: one["done"] for one in answer["outcomes"]}
    assert cluster.run("login", "sh", "-c", f"cat {seen}; rm -f {seen}", user="bob") == "bob\n"
    assert outcomes[jobs.plain]  # done as alice, by Slurm's own scontrol
    wait_for("her job's release", lambda: not any("Held" in x for x in _lines(cluster, jobs.plain)))
    held = cluster.run("login", "squeue", "-h", f"--jobs={jobs.his}", "--format=%r").strip()
    assert held == "JobHeldUser"  # bob's own business


def _lines(cluster: Cluster, job: str) -> list[str]:
    return [line for line in states(cluster) if line.startswith(f"{job} ")]
