"""Slurm's report of a job, whatever its user named it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portal.gpu.slurm import Gres, NoSuchJob, SlurmError, expand, parse, parse_gres
from tests.unit.gpu.node import RECORDED

VERSIONS = ["24.11", "26.05"]


def _one(version: str) -> dict[str, Any]:
    text = (RECORDED / version / "gpu-job.json").read_text()
    job: dict[str, Any] = json.loads(text)["jobs"][0]
    return job


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_job_whose_name_claims_something_else(version: str) -> None:
    text = (RECORDED / version / "gpu-job.json").read_text()
    job = _one(version)
    assert "GRES=shard:4(4/4)" in job["name"]  # invented by its user
    found = parse(text, job["job_id"], "n1")
    assert found.gres == (Gres("shard", "", 2, ((2, 4),)),)
    assert (found.uid, found.gid, found.over) == (1001, 1001, False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("shard:2(2/4)", [Gres("shard", "", 2, ((2, 4),))]),
        ("shard:a100:2(0/8,2/8)", [Gres("shard", "a100", 2, ((2, 8),))]),
        ("shard:a100:4(2/8,2/8)", [Gres("shard", "a100", 4, ((2, 8), (2, 8)))]),
        ("gpu:a100:1(IDX:0)", [Gres("gpu", "a100", 1)]),
        ("gpu:3(IDX:0-1,3)", [Gres("gpu", "", 3)]),
        ("gpu:1g.10gb:1(IDX:2)", [Gres("gpu", "1g.10gb", 1)]),
        (
            "gpu:h100:1(IDX:0),shard:1(1/4)",
            [Gres("gpu", "h100", 1), Gres("shard", "", 1, ((1, 4),))],
        ),
    ],
)
def test_forms_of_gres(text: str, found: list[Gres]) -> None:
    assert list(parse_gres(text)) == found


def test_an_unknown_form_of_gres_is_refused() -> None:
    with pytest.raises(SlurmError, match="unknown GRES format"):
        list(parse_gres("shard=2"))


@pytest.mark.parametrize(
    ("nodes", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-2]", ["n1", "n2"]),
        ("gpu[01-03,07]-ib,login", ["gpu01-ib", "gpu02-ib", "gpu03-ib", "gpu07-ib", "login"]),
        ("r[1-2]n[09-10]", ["r1n09", "r1n10", "r2n09", "r2n10"]),
    ],
)
def test_node_ranges(nodes: str, names: list[str]) -> None:
    assert expand(nodes) == names


def _answer(*jobs: dict[str, Any]) -> str:
    return json.dumps({"jobs": jobs})


def test_each_node_has_its_own_part_of_a_job() -> None:
    job = _one("24.11") | {
        "job_id": 7,
        "nodes": "n[1-3]",
        "gres_detail": ["gpu:1(IDX:0)", "", "gpu:2(IDX:0-1)"],
    }
    assert [one.count for one in parse(_answer(job), 7, "n3").gres] == [2]
    assert parse(_answer(job), 7, "n2").gres == ()
    assert parse(_answer(job), 7, "elsewhere").gres == ()


def test_other_tasks_of_an_array_are_not_this_job() -> None:
    other = _one("24.11") | {"job_id": 8, "gres_detail": ["shard:4(4/4)"]}
    mine = _one("24.11") | {"job_id": 9}
    assert parse(_answer(other, mine), 9, "n1").gres[0].count == 2
    with pytest.raises(NoSuchJob):
        parse(_answer(other), 9, "n1")
    with pytest.raises(NoSuchJob):
        parse(_answer(mine, mine), 9, "n1")


@pytest.mark.parametrize("text", ["", "slurm_load_jobs error", "{}", '{"jobs": [{"job_id": 9}]}'])
def test_an_unknown_report(text: str) -> None:
    with pytest.raises(SlurmError):
        parse(text, 9, "n1")


@pytest.mark.parametrize(("state", "over"), [("COMPLETING", False), ("CANCELLED", True)])
def test_states_in_both_forms(state: str, over: bool) -> None:
    for states in (state, [state]):
        job = _one("24.11") | {"job_state": states}
        assert parse(_answer(job), job["job_id"], "n1").over is over
