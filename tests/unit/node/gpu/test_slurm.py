"""Slurm's report of a job, whatever its user named it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.node.common.gres import Gres
from portal.node.gpu import untrusted
from portal.node.gpu.slurm import (
    Node,
    NoSuchJob,
    SlurmError,
    ask,
    ask_node,
    parse,
    update_node,
)
from tests.support.untrusted_names import names
from tests.unit.node.gpu.node import RECORDED

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


def test_an_unknown_form_of_gres_is_refused() -> None:
    job = _one("24.11") | {"job_id": 7, "nodes": "n1", "gres_detail": ["shard=2"]}
    with pytest.raises(SlurmError, match="unknown GRES format"):
        parse(_answer(job), 7, "n1")


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


@pytest.mark.parametrize("state", ["BOOT_FAIL", "PREEMPTED"])
def test_all_final_states(state: str) -> None:
    job = _one("24.11") | {"job_state": [state, "COMPLETING"]}
    found = parse(_answer(job), job["job_id"], "n1")
    assert (found.over, found.completing) == (True, True)


# Names in any bytes, as Slurm prints them


def _named(name: bytes) -> bytes:
    """Slurm's answer about a running job of that name; json-c escapes quotes and controls."""
    job = _one("24.11") | {"name": "NAME", "comment": "NAME", "job_id": 9}
    escaped = b"".join(
        b"\\u%04x" % byte
        if byte < 32
        else b"\\" + bytes([byte])
        if byte in b'"\\'
        else bytes([byte])
        for byte in name
    )
    return _answer(job).encode().replace(b"NAME", escaped)


def test_a_job_of_any_name() -> None:
    """One whose name was no UTF-8 ended the watchdog, and got no slice."""
    for name in names(200):
        assert parse(untrusted.decode(_named(name)), 9, "n1").gres[0].count == 2


def test_a_version_that_escapes_nothing_but_quotes() -> None:
    for byte in set(range(1, 256)) - set(b'"\\'):
        text = _named(b"NAME2").replace(b"NAME2", bytes([byte]))
        assert not parse(untrusted.decode(text), 9, "n1").over


Scontrol = Callable[[bytes, int, bytes], None]


@pytest.fixture
def scontrol(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scontrol:
    """A scontrol that prints these bytes, and notes its arguments."""
    program = tmp_path / "scontrol"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\ncat {tmp_path}/out\n'
        f"cat {tmp_path}/err >&2\nexit $(cat {tmp_path}/code)\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def prints(out: bytes, code: int = 0, err: bytes = b"") -> None:
        (tmp_path / "out").write_bytes(out)
        (tmp_path / "err").write_bytes(err)
        (tmp_path / "code").write_text(str(code))

    return prints


@pytest.mark.parametrize("name", [b"x\xff", b"Invalid job id", b"\x0b\xe2\x80\xa8", b'"},{"'])
def test_a_living_job_is_not_over_whatever_it_is_called(scontrol: Scontrol, name: bytes) -> None:
    """`Invalid job id` was searched in what its user had written."""
    scontrol(_named(name), 0, b"")
    assert not ask(9, "n1").over
    scontrol(_named(name), 1, b"slurm_load_jobs error: Unable to contact slurm controller")
    with pytest.raises(SlurmError, match="Unable to contact") as raised:
        ask(9, "n1")
    assert not isinstance(raised.value, NoSuchJob)


@pytest.mark.parametrize(
    ("out", "err"),
    [
        (b"", b"slurm_load_jobs error: Invalid job id specified\n"),
        (b'{"jobs": [], "errors": [{"error_number": 2017, "error": "Invalid job id"}]}', b""),
    ],
)
def test_a_job_that_slurm_does_not_know(scontrol: Scontrol, out: bytes, err: bytes) -> None:
    scontrol(out, 1, err)
    with pytest.raises(NoSuchJob):
        ask(9, "n1")
    scontrol(out, 0, err)
    with pytest.raises(SlurmError):  # with JSON of no job, or none
        ask(9, "n1")


@pytest.mark.parametrize("out", [b"\xff", b"[" * 100_000, b'{"errors": 3}', b"[]", b"1" * 5000])
def test_an_odd_answer(scontrol: Scontrol, out: bytes) -> None:
    for code in (0, 1):
        scontrol(out, code, b"\xff")
        for question in (ask_node, lambda name: ask(9, name)):
            with pytest.raises(SlurmError):
                question("n1")


@pytest.mark.parametrize(
    ("state", "drained"),
    [(["IDLE", "DRAIN"], True), ("IDLE+DRAIN", True), (["IDLE"], False), ("MIXED", False)],
)
def test_the_node(scontrol: Scontrol, state: object, drained: bool) -> None:
    nodes = [{"name": "n10", "state": ["DOWN"], "reason": ""}]
    nodes.append({"name": "n1", "state": state, "reason": "slipway: x"})  # type: ignore[dict-item]
    scontrol(json.dumps({"nodes": nodes}).encode(), 0, b"")
    assert ask_node("n1") == Node(drained, "slipway: x")


def test_a_nodes_state_is_changed(scontrol: Scontrol, tmp_path: Path) -> None:
    scontrol(b"", 0, b"")
    update_node("n1", "DRAIN", "slipway: a b")
    words = ["update", "NodeName=n1", "State=DRAIN", "Reason=slipway: a b"]
    assert (tmp_path / "arguments").read_text().splitlines() == words
    update_node("n1", "UNDRAIN")
    assert "Reason" not in (tmp_path / "arguments").read_text()
    scontrol(b"", 1, b"slurm_update error: Invalid node name specified")
    with pytest.raises(SlurmError, match="Invalid node name"):
        update_node("n1", "UNDRAIN")
