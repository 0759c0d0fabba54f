"""Parsing the output of real Slurm versions (tests/recorded/<version>/)."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.adapters.slurm.accounting import sacct_argv, sacct_parse
from portal.adapters.slurm.commands import (
    UnexpectedOutput,
    is_job_id,
    parse_minutes,
    sinfo_parse,
)
from portal.adapters.slurm.queue import squeue_argv, squeue_parse
from portal.core.cluster.job_reports import JobState
from tests.support.recordings import VERSIONS, job_kinds, recorded


@pytest.mark.parametrize("version", VERSIONS)
def test_squeue(version: str) -> None:
    reports = {job.id: job.report for job in squeue_parse(recorded(version, "squeue"))}
    jobs = {role: reports[job] for role, job in job_kinds(version).items()}
    limited, running = jobs["limited"], jobs["running"]
    assert (limited.state, limited.reason) == (JobState.PENDING, "QOSMaxCpuPerUserLimit")
    assert (limited.nodes, limited.start) == ((), None)
    assert limited.partition == "main"
    assert limited.priority > 0
    assert running.state is JobState.RUNNING
    assert running.nodes[0] in ("n1", "n2")
    assert running.start is not None
    assert abs(running.start - (running.submitted or running.start)) < timedelta(seconds=5)
    assert running.end is None  # the queue shows the time limit there
    assert (jobs["failed"].state, jobs["failed"].exit_code) == (JobState.FAILED, 3)
    assert jobs["oom"].state is JobState.OUT_OF_MEMORY
    assert jobs["cancelled"].state is JobState.CANCELLED
    assert (jobs["held"].user, jobs["held"].reason) == ("bob", "JobHeldUser")
    assert jobs["held"].priority == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_squeue_for_one_session(version: str) -> None:
    (job,) = squeue_parse(recorded(version, "squeue-named"))
    assert (job.id, job.report.user) == (job_kinds(version)["running"], "alice")


@pytest.mark.parametrize("version", VERSIONS)
def test_sacct(version: str) -> None:
    reports = {job.job_id: job for job in sacct_parse(recorded(version, "sacct"))}
    jobs = {role: reports[job] for role, job in job_kinds(version).items()}
    assert jobs["cancelled"].state is JobState.CANCELLED
    assert jobs["cancelled"].cancelled_by == "1001"
    assert jobs["failed"].exit_code == 3
    assert jobs["limited"].nodes == ()
    assert jobs["running"].end is None


@pytest.mark.parametrize("version", VERSIONS)
def test_sinfo(version: str) -> None:
    main, *_others = sinfo_parse(recorded(version, "sinfo"))
    assert (main.name, main.default, main.up) == ("main", True, True)
    assert (main.max_memory_mb, main.max_minutes) == (3500, 480)
    assert main.max_cpus >= 1


def test_the_queue_is_queried_without_user_controlled_fields() -> None:
    line = " ".join(squeue_argv())
    for field in ("Name:", "Comment", "WorkDir", "Command"):
        assert field not in line.replace("UserName", "")


@pytest.mark.parametrize(
    "text", ["1\x1f2\n", "7\x1fa\x1fDANCING\x1f\x1f\x1f1\x1f1\x1f1\x1f0\x1fmain\x1f1\x1f\n"]
)
def test_unexpected_output_is_refused(text: str) -> None:
    with pytest.raises(UnexpectedOutput):
        squeue_parse(text)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [("8:00:00", 480), ("1-00:00:00", 1440), ("30:00", 30), ("infinite", None)],
)
def test_time_limits(text: str, minutes: int | None) -> None:
    assert parse_minutes(text) == minutes


def test_valid_job_numbers() -> None:
    assert all(map(is_job_id, ["1", "67108863", "4294967294"]))
    assert not any(
        map(is_job_id, ["", "²", "1 2", "12;cluster", "1\n", "12345678901", "-1", "\u0661"])
    )
    with pytest.raises(ValueError, match="invalid job ids"):
        sacct_argv(["1", "²"])
