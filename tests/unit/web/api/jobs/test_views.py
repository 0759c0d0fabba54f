"""Jobs over the REST API: responses, refusals, and two users."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.support.fakes import World
from tests.support.slurm import FakeJob
from tests.support.stored_jobs import array, job, store_jobs
from tests.unit.web.conftest import Api, Runner
from tests.unit.web.judge import response_json

MakeApi = Callable[[str], Api]


def in_slurm(world: World, number: int, user: str = "alice", state: str = "PENDING") -> FakeJob:
    """A job in the fake Slurm too, so that it can be acted on."""
    made = FakeJob(number, user, f"job{number}", "", "", state)
    world.slurm.jobs.append(made)
    return made


def test_a_job_has_all_that_slurm_says(world: World, api: MakeApi) -> None:
    now = world.clock()
    estimate = now + timedelta(hours=2)
    store_jobs(
        world,
        job(
            12, now, name="train", start=estimate, directory="/home/alice/work",
            command="/home/alice/work/train.sh --fast", stdout="/home/alice/work/slurm-12.out",
            stderr="/home/alice/work/slurm-12.out", dependency="afterok:11", cpus=4,
        ),
    )  # fmt: skip
    assert response_json(api("alice")("GET", "/jobs/12")) == {
        "id": "12",
        "array": None,
        "het": None,
        "name": "train",
        "owner": "alice",
        "state": "pending",
        "slurm_state": "PENDING",
        "reason": {
            "code": "Priority",
            "text": "Others are ahead in the queue.",
            "advice": "A shorter time limit can help.",
            "ahead": 0,
            "estimated_start": estimate.isoformat(),
        },
        "end": None,
        "unknown_since": None,
        "partition": "main",
        "account": "research",
        "qos": "normal",
        "resources": {
            "cpus": 4, "memory": "1g", "nodes": 0, "gpus": 0, "shards": 0, "fgpu": None
        },
        "nodes": [],
        "submitted": (now - timedelta(hours=1) + timedelta(seconds=12)).isoformat(),
        "started": None,
        "ended": None,
        "deadline": None,
        "time_limit": 60,
        "unlimited": False,
        "restarts": 0,
        "directory": "/home/alice/work",
        "command": "/home/alice/work/train.sh --fast",
        "stdout": "/home/alice/work/slurm-12.out",
        "stderr": "/home/alice/work/slurm-12.out",
        "dependency": "afterok:11",
        "session": None,
    }  # fmt: skip


def test_an_ended_job_says_how(world: World, api: MakeApi) -> None:
    store_jobs(world, job(13, world.clock(), state="FAILED", exit_code=7))
    found = response_json(api("alice")("GET", "/jobs/13"))
    assert found["end"] == {"text": found["end"]["text"], "exit_code": 7, "signal": None}
    assert "7" in found["end"]["text"]
    assert found["ended"] == world.clock().isoformat()
    assert found["reason"] is None


def test_an_array_is_one_row_with_its_states(world: World, api: MakeApi) -> None:
    store_jobs(world, *array(100, world.clock(), 2, "2-19%4"))
    (row,) = response_json(api("alice")("GET", "/jobs?state=pending"))["jobs"]
    assert row["id"] == "100"
    assert row["array"] == {"id": "100", "tasks": "2-19%4", "states": {"PENDING": 18}}
    running = response_json(api("alice")("GET", "/jobs?state=running"))["jobs"]
    assert [one["array"]["states"] for one in running] == [{"RUNNING": 2}]
    tasks = response_json(api("alice")("GET", "/jobs?array=100&sort=submitted"))["jobs"]
    assert [one["id"] for one in tasks] == ["100_[2-19%4]", "100_0", "100_1"]
    assert all("states" not in one["array"] for one in tasks)


def test_pages_follow_each_other(world: World, api: MakeApi) -> None:
    now = world.clock()
    store_jobs(world, *(job(number, now) for number in range(1, 6)))
    first = response_json(api("alice")("GET", "/jobs?limit=3"))
    rest = response_json(api("alice")("GET", f"/jobs?limit=3&cursor={first['next_cursor']}"))
    found = [one["id"] for page in (first, rest) for one in page["jobs"]]
    assert found == ["5", "4", "3", "2", "1"]
    assert rest["next_cursor"] is None


def test_unlimited_is_a_value_of_its_own(world: World, api: MakeApi) -> None:
    now = world.clock()
    store_jobs(
        world,
        job(1, now, time_limit=None),
        job(2, now, state="RUNNING", time_limit=None),
        job(3, now, state="RUNNING", time_limit=5),
        job(4, now, state="CANCELLED", time_limit=None, start=None),  # its partition's, unknown
    )
    found = response_json(api("alice")("GET", "/jobs?sort=name"))["jobs"]
    assert [one["unlimited"] for one in found] == [True, True, False, False]
    assert [one["time_limit"] for one in found] == [None, None, 5, None]


@pytest.mark.parametrize(
    ("sort", "rising"),
    [("partition", "2314"), ("status", "4213"), ("time_limit", "4123"), ("priority", "4321")],
)
def test_jobs_are_sorted_in_both_directions(
    world: World, api: MakeApi, sort: str, rising: str
) -> None:
    now = world.clock()
    store_jobs(
        world,
        job(1, now),
        job(2, now, partition="gpu", reason="Dependency", time_limit=90),
        job(3, now, partition="gpu", reason="Resources", time_limit=None),
        job(4, now, state="COMPLETED", time_limit=5),
    )

    def ids(order: str) -> str:
        found, cursor = "", ""
        while cursor is not None:
            page = response_json(api("alice")("GET", f"/jobs?sort={order}&limit=1{cursor}"))
            found += "".join(one["id"] for one in page["jobs"])
            cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
        return found

    assert ids(sort) == rising
    assert ids(f"-{sort}") == rising[::-1]


@pytest.mark.parametrize("sort", ["price", "-", "--name", "NAME", "submitted,name"])
def test_an_unknown_order_is_refused_by_name(api: MakeApi, sort: str) -> None:
    answer = api("alice")("GET", f"/jobs?sort={sort}")
    assert answer.status_code == 422
    assert [error["field"] for error in response_json(answer)["errors"]] == ["sort"]


@pytest.mark.parametrize("number", ["20", "21_0", "999", "x", "20_1", "%00"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "", None), ("DELETE", "", None), ("POST", "/extend", {"minutes": 5})],
)
def test_others_jobs_are_like_no_jobs(
    world: World, api: MakeApi, number: str, method: str, path: str, body: object
) -> None:
    store_jobs(world, job(20, world.clock(), "bob"), *array(21, world.clock(), 1, user="bob"))
    answer = api("alice")(method, f"/jobs/{number}{path}", json=body)
    assert answer.status_code == 404
    assert "There is no such job." in answer.text or number == "%00"
    assert [line for line in world.slurm.commands if "scancel" in line] == []


def test_nobody_lists_others_jobs(world: World, api: MakeApi) -> None:
    store_jobs(world, job(20, world.clock(), "bob"), job(22, world.clock()))
    for query, found in (("", ["22"]), ("?owner=bob", []), ("?q=job20", []), ("?array=20", [])):
        listed = response_json(api("alice")("GET", f"/jobs{query}"))["jobs"]
        assert [one["id"] for one in listed] == found
    everybody = response_json(api("admin")("GET", "/jobs?owner=bob"))["jobs"]
    assert [one["owner"] for one in everybody] == ["bob"]


def test_cancelling_is_idempotent(world: World, api: MakeApi) -> None:
    store_jobs(world, job(1, world.clock()), job(2, world.clock(), state="COMPLETED"))
    in_slurm(world, 1)
    assert api("alice")("DELETE", "/jobs/1").status_code == 202
    assert [line for line in world.slurm.commands if "scancel" in line] == [
        "alice: scancel --quiet 1"
    ]
    again = api("alice")("DELETE", "/jobs/2")
    assert again.status_code == 202
    assert response_json(again)["slurm_state"] == "COMPLETED"


def test_a_sessions_job_is_not_cancelled_here(
    world: World, api: MakeApi, launched: Callable[..., Runner]
) -> None:
    session = launched("alice").session
    store_jobs(world, job(int(session.job_id or 0), world.clock(), name=session.id))
    answer = api("alice")("DELETE", f"/jobs/{session.job_id}")
    assert answer.status_code == 409
    assert "Sessions page" in answer.text
    found = response_json(api("alice")("GET", f"/jobs/{session.job_id}"))
    assert found["session"] == session.id


def test_actions_on_many_tell_what_became_of_each(world: World, api: MakeApi) -> None:
    now = world.clock()
    store_jobs(world, job(1, now), job(2, now, state="FAILED"), *array(100, now, 1, "1-9"))
    in_slurm(world, 1)
    answer = api("alice")("POST", "/jobs/cancel", json={"ids": ["1", "2", "100_0"]})
    assert answer.status_code == 202
    assert response_json(answer)["outcomes"] == [
        {"id": "1", "done": True, "text": "Cancelled."},
        {"id": "2", "done": False, "text": "Job 2 has ended already."},
        {"id": "100_0", "done": True, "text": "Cancelled."},
    ]
    assert "alice: scancel --quiet 1 100_0" in world.slurm.commands


@pytest.mark.parametrize("action", ["cancel", "hold", "release", "requeue"])
def test_actions_on_others_jobs_do_nothing(world: World, api: MakeApi, action: str) -> None:
    store_jobs(world, job(1, world.clock()), job(20, world.clock(), "bob"))
    before = list(world.slurm.commands)
    answer = api("alice")("POST", f"/jobs/{action}", json={"ids": ["1", "20"]})
    assert answer.status_code == 404
    assert "bob" not in answer.text
    assert world.slurm.commands == before


def test_a_token_to_read_does_not_act(world: World, api: MakeApi) -> None:
    store_jobs(world, job(1, world.clock()))
    body = {"name": "reads", "scopes": ["read"]}
    token = response_json(api("alice")("POST", "/tokens", json=body))["token"]
    reader = Api(api("alice").client, token)
    assert reader("GET", "/jobs/1").status_code == 200
    assert reader("DELETE", "/jobs/1").status_code == 403
    assert reader("POST", "/jobs/hold", json={"ids": ["1"]}).status_code == 403


def test_time_is_extended_only_where_the_portal_may(world: World, api: MakeApi) -> None:
    store_jobs(world, job(1, world.clock(), state="RUNNING"))
    for body in ({"minutes": 30}, {"minutes": "max"}, {}):
        answer = api("alice")("POST", "/jobs/1/extend", json=body)
        assert answer.status_code == 409
        assert "Time cannot be extended here. Ask the administrators." in answer.text
