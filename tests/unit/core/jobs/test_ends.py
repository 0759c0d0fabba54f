"""How jobs ended, in words."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.ends import GONE, explain_end
from portal.core.jobs.job import Job

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def end(state: JobState, signal: int | None = None, **report: Any) -> str:
    """How a job that ended so is explained."""
    return explain_end(Job(JobReport("1", "alice", state, **report), signal=signal))


@pytest.mark.parametrize(
    ("state", "report", "text"),
    [
        (JobState.COMPLETED, {}, "It ended without an error (exit code 0)."),
        (
            JobState.FAILED,
            {"exit_code": 7},
            "It failed with exit code 7. Its output may say why.",
        ),
        (
            JobState.FAILED,
            {"exit_code": 127},
            "It failed with exit code 127: a command was not found. Its output may say why.",
        ),
        (
            JobState.FAILED,
            {"exit_code": 139},
            "It failed with exit code 139: signal 11 (SIGSEGV) ended its last command. "
            "Its output may say why.",
        ),
        (
            JobState.FAILED,
            {"exit_code": 0, "signal": 9},
            "Signal 9 (SIGKILL) ended it. Its output may say why.",
        ),
        (JobState.FAILED, {"signal": 99}, "Signal 99 ended it. Its output may say why."),
        (
            JobState.FAILED,
            {"exit_code": 0},
            "It failed to start, or its node reported an error. Its output may say why.",
        ),
        (
            JobState.OUT_OF_MEMORY,
            {"memory_mb": 100},
            "It needed more memory than the 100 MB that it asked for. "
            "Submit it again with more (--mem).",
        ),
        (
            JobState.TIMEOUT,
            {"time_limit": 90},
            "It reached its time limit of 1 h 30 min. "
            "Submit it again with a longer one if it was too short.",
        ),
        (
            JobState.NODE_FAIL,
            {"nodes": ("n1",)},
            "The compute node n1 failed. Submit it again.",
        ),
        (
            JobState.NODE_FAIL,
            {"nodes": ("n1", "n2")},
            "One of its compute nodes failed. Submit it again.",
        ),
        (
            JobState.PREEMPTED,
            {},
            "A job of higher priority needed the place. Submit it again.",
        ),
        (JobState.CANCELLED, {}, "It was cancelled before it started."),
        (
            JobState.CANCELLED,
            {"cancelled_by": "alice", "start": NOON},
            "alice cancelled it while it ran.",
        ),
        (
            JobState.CANCELLED,
            {"cancelled_by": "root"},
            "root (an administrator) cancelled it before it started.",
        ),
    ],
)
def test_ends(state: JobState, report: dict[str, Any], text: str) -> None:
    signal = report.pop("signal", None)
    assert end(state, signal, **report) == text


@pytest.mark.parametrize("state", [state for state in JobState if state.over])
def test_every_end_has_words_of_its_own(state: JobState) -> None:
    others = {end(one) for one in JobState if one.over and one is not state}
    assert end(state)
    assert end(state) not in others


def test_a_job_that_lives_has_none_and_one_that_is_gone_is_not_ended() -> None:
    running = JobReport("1", "alice", JobState.RUNNING)
    assert explain_end(Job(running)) == ""
    assert explain_end(Job(running, gone=NOON)) == GONE
