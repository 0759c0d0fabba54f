"""Reading what real Slurms printed (tests/recorded/<version>/)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.adapters.commands import (
    SurpriseError,
    expand_nodes,
    parse_minutes,
    sacct_parse,
    sbatch_parse,
    sinfo_parse,
    squeue_argv,
    squeue_parse,
)
from portal.core.job import JobState, Partition

RECORDED = Path(__file__).parents[2] / "recorded"
VERSIONS = sorted(folder.name for folder in RECORDED.iterdir() if folder.is_dir())


def recorded(version: str, name: str) -> str:
    """One recorded output."""
    return (RECORDED / version / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("version", VERSIONS)
def test_squeue(version: str) -> None:
    jobs = {job.job_id: job for job in squeue_parse(recorded(version, "squeue"))}
    assert jobs["18"].state is JobState.PENDING
    assert jobs["18"].reason == "QOSMaxCpuPerUserLimit"
    assert jobs["18"].nodes == ()
    assert jobs["18"].start is None
    assert jobs["17"].state is JobState.RUNNING
    assert jobs["17"].nodes == ("n2",)
    assert jobs["17"].start == datetime.fromtimestamp(1795199554, UTC)
    assert jobs["17"].end is None  # the queue shows the time limit there
    assert (jobs["11"].state, jobs["11"].exit_code) == (JobState.FAILED, 3)
    assert jobs["13"].state is JobState.OUT_OF_MEMORY
    assert jobs["19"].user == "bob"


@pytest.mark.parametrize("version", VERSIONS)
def test_sacct(version: str) -> None:
    jobs = {job.job_id: job for job in sacct_parse(recorded(version, "sacct"))}
    assert jobs["14"].state is JobState.CANCELLED  # "CANCELLED by 1001"
    assert jobs["11"].exit_code == 3
    assert jobs["18"].nodes == ()
    assert jobs["15"].end is None


@pytest.mark.parametrize("version", VERSIONS)
def test_sinfo(version: str) -> None:
    assert sinfo_parse(recorded(version, "sinfo")) == [Partition("main", True, True, 2, 3500, 480)]


def test_the_queue_is_asked_without_anything_that_users_write() -> None:
    line = " ".join(squeue_argv())
    for field in ("Name:", "Comment", "WorkDir", "Command"):
        assert field not in line.replace("UserName", "")


@pytest.mark.parametrize(
    "text", ["1\x1f2\n", "7\x1fa\x1fDANCING\x1f\x1f\x1f1\x1f1\x1f1\x1f0\x1f\n"]
)
def test_a_surprise_is_not_guessed_at(text: str) -> None:
    with pytest.raises(SurpriseError):
        squeue_parse(text)


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("", ()),
        ("n1", ("n1",)),
        ("n[1-3,07],login1", ("n1", "n2", "n3", "n07", "login1")),
        ("gpu[08-10]-ib", ("gpu08-ib", "gpu09-ib", "gpu10-ib")),
    ],
)
def test_node_lists(text: str, nodes: tuple[str, ...]) -> None:
    assert expand_nodes(text) == nodes


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("8:00:00", 480), ("1-00:00:00", 1440), ("30:00", 30), ("infinite", None)],
)
def test_time_limits(text: str, minutes: int | None) -> None:
    assert parse_minutes(text) == minutes


def test_sbatch() -> None:
    assert sbatch_parse("12\n") == "12"
    assert sbatch_parse("12;cluster\n") == "12"
    assert sbatch_parse("welcome to the cluster\n12\n") == "12"  # a chatty .bashrc
    with pytest.raises(SurpriseError):
        sbatch_parse("")
