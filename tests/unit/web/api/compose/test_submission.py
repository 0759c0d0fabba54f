"""POST /api/v1/jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.fakes import World
from tests.unit.web.conftest import Api

SCRIPT = "#!/bin/sh\nhostname\n"
Client = Callable[[str], Api]


def test_a_job_is_submitted_once_for_its_key(api: Client, world: World) -> None:
    body = {"script": SCRIPT, "name": "first", "options": ["--hold"]}
    for _ in range(2):
        answer = api("alice")("POST", "/jobs", json=body, headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json) == (201, {"job": {"id": "1"}})
        assert answer.headers["Location"].endswith("/api/v1/jobs/1")
    assert world.slurm.submitted == [("alice", ["--job-name=first", "--hold"], SCRIPT)]
    other = body | {"name": "second"}
    answer = api("alice")("POST", "/jobs", json=other, headers={"Idempotency-Key": "k"})
    assert answer.status_code == 409


def test_arguments_reach_the_script_as_they_are(api: Client, world: World) -> None:
    body = {"script": SCRIPT, "args": ["a", "b c", "$HOME"]}
    assert api("alice")("POST", "/jobs", json=body).status_code == 201
    assert world.slurm.submitted == [("alice", ["/dev/stdin", "a", "b c", "$HOME"], SCRIPT)]


def test_a_check_submits_nothing(api: Client, world: World) -> None:
    answer = api("alice")("POST", "/jobs", json={"script": SCRIPT, "test_only": True})
    assert answer.status_code == 200
    assert answer.json is not None
    assert answer.json["check"].startswith("It would start at 2026-11-20T15:00:00 UTC")
    assert world.slurm.submitted == []


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "script"),
        ({"script": "echo"}, "script"),
        ({"script": SCRIPT, "test_only": "yes"}, "test_only"),
        ({"script": SCRIPT, "options": ["--wrap=id"]}, "options"),
        ({"script": SCRIPT, "resources": {"cpus": "x"}}, "resources.cpus"),
        ({"script": SCRIPT, "image": "r"}, "image"),
        ({"script": SCRIPT, "owner": "bob"}, "owner"),
        ({"path": "~/none.sh"}, "path"),
        ([], "body"),
    ],
)
def test_bad_input_names_the_field_and_submits_nothing(
    api: Client, world: World, body: Any, field: str
) -> None:
    answer = api("alice")("POST", "/jobs", json=body)
    assert answer.status_code == 422
    assert answer.json is not None
    assert [error["field"] for error in answer.json["errors"]] == [field]
    assert world.slurm.submitted == []


def test_a_refusal_of_slurm_names_the_field(api: Client, world: World) -> None:
    world.slurm.refuse = "Requested time limit is invalid (missing or exceeds some limit)"
    answer = api("alice")("POST", "/jobs", json={"script": SCRIPT, "time_limit": "8h"})
    assert answer.status_code == 422
    assert answer.json is not None
    assert answer.json["errors"] == [{"field": "time_limit", "message": world.slurm.refuse}]


def test_a_lost_answer_is_told_and_not_repeated(api: Client, world: World) -> None:
    world.slurm.lose_answer = True
    for _ in range(2):
        headers = {"Idempotency-Key": "k"}
        answer = api("alice")("POST", "/jobs", json={"script": SCRIPT}, headers=headers)
        assert answer.status_code == 503
        assert "Look at your jobs before you submit it again" in answer.text
    assert len(world.slurm.submitted) == 1
