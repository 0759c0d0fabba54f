"""What jobs write and use over the REST API."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.fakes import World
from tests.support.measured_jobs import ERR, OUT, TEXTS, end, live_step, record, run, submit
from tests.unit.web.conftest import Api, Runner

MakeApi = Callable[[str], Api]


def test_an_output_in_parts(world: World, api: MakeApi) -> None:
    run(world)
    world.slurm.files |= {OUT: b"gr\xc3\xb6sse\n", ERR: b"oh\n"}
    alice = api("alice")
    first = alice("GET", "/jobs/7/output").json
    assert first == {"output": "grösse\n", "offset": 0, "next_offset": 8}
    assert alice("GET", "/jobs/7/output?offset=5").json == {
        "output": "se\n", "offset": 5, "next_offset": 8,
    }  # fmt: skip
    anew = alice("GET", "/jobs/7/output?stream=stderr&offset=99").json
    assert anew == {"output": "oh\n", "offset": 0, "next_offset": 3}


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("stream=x", "stream"),
        ("offset=-1", "offset"),
        ("offset=1e3", "offset"),
        ("path=/x", "path"),
    ],
)
def test_wrong_queries_name_the_field(world: World, api: MakeApi, query: str, field: str) -> None:
    run(world)
    answer = api("alice")("GET", f"/jobs/7/output?{query}")
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json["errors"]] == [field] if answer.json else False


@pytest.mark.parametrize("path", ["output", "usage"])
def test_others_get_the_same_answer_as_for_no_job(world: World, api: MakeApi, path: str) -> None:
    run(world)
    refused, missing = api("bob")("GET", f"/jobs/7/{path}"), api("bob")("GET", f"/jobs/8/{path}")
    assert refused.status_code == missing.status_code == 404
    assert refused.json == missing.json


def test_the_log_of_a_session_is_on_its_own_page(
    world: World, api: MakeApi, launched: Callable[..., Runner]
) -> None:
    session = launched("alice").session
    number = session.job_id or ""
    run(world, int(number), texts=replace(TEXTS, name=session.id))
    answer = api("alice")("GET", f"/jobs/{number}/output")
    assert answer.status_code == 409
    assert "log is on the session's own page" in answer.text
    assert not any(OUT in line for line in world.slurm.commands)


def test_the_use_of_a_running_job(world: World, api: MakeApi) -> None:
    run(world)
    world.slurm.steps[7] = [live_step(7, 120, 2**30)]
    found = api("alice")("GET", "/jobs/7/usage").json
    assert found == {
        "measured": world.clock().isoformat(), "final": False, "cpus": 4, "cpu_seconds": 120.0,
        "cpus_busy": None, "cpu_efficiency": 0.5, "memory": 2**30, "memory_peak": 2**30,
        "memory_peak_node": "n1", "memory_peak_all": 2**30, "gpu_percent": None,
        "gpu_memory": None, "problem": "",
    }  # fmt: skip


def test_the_use_of_a_job_that_is_over(world: World, api: MakeApi) -> None:
    end(world)
    world.slurm.steps[7] = record(7, 600, "00:10:00", "2G")
    found = api("alice")("GET", "/jobs/7/usage").json
    assert found is not None
    assert (found["final"], found["cpu_efficiency"], found["memory_peak"]) == (True, 0.25, 2**31)


def test_a_job_that_waits_uses_nothing(world: World, api: MakeApi) -> None:
    submit(world)
    found = api("alice")("GET", "/jobs/7/usage").json
    assert found is not None
    assert (found["measured"], found["cpus"]) == (None, 0)
    assert not any("sstat" in line or "TotalCPU" in line for line in world.slurm.commands)
