"""Why sessions end, from Slurm's reports and their logs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.session.end_reasons import (
    LOG_BYTES,
    LOG_LINES,
    app_trouble,
    explain_end,
    needs_log,
    start_failure,
    tail,
    unexpected,
)
from portal.core.session.session import NEVER_CALLED, Cause, Session, State

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def session(**changes: Any) -> Session:
    """A running session."""
    values: dict[str, Any] = {
        "id": "0" * 32, "name": "one", "owner": "alice", "environment": "python",
        "version": "3.13", "cpus": 1, "memory_mb": 600, "state": State.RUNNING, "created": NOW,
        "token_hash": "x", "submitted": NOW, "ready": NOW, "node": "n2", "job_id": "7",
    }  # fmt: skip
    return Session(**values | changes)


def report(state: JobState, **more: Any) -> JobReport:
    """Slurm's report."""
    return JobReport("7", "alice", state, **more)


@pytest.mark.parametrize(
    ("state", "more", "cause", "words"),
    [
        (JobState.COMPLETED, {}, Cause.FINISHED, "ended by itself"),
        (JobState.FAILED, {"exit_code": 9}, Cause.FAILED, "exit code 9"),
        (JobState.CANCELLED, {}, Cause.CANCELLED, "Cancelled with Slurm's own"),
        (JobState.CANCELLED, {"cancelled_by": "alice"}, Cause.CANCELLED, "by alice with"),
        (JobState.CANCELLED, {"cancelled_by": "root"}, Cause.CANCELLED, "root (an administrator)"),
        (JobState.TIMEOUT, {}, Cause.TIME_LIMIT, "time limit was reached"),
        (JobState.DEADLINE, {}, Cause.TIME_LIMIT, "time limit was reached"),
        (JobState.OUT_OF_MEMORY, {}, Cause.OUT_OF_MEMORY, "more memory than the 600 MB"),
        (JobState.NODE_FAIL, {}, Cause.NODE_FAILURE, "node n2 failed"),
        (JobState.BOOT_FAIL, {}, Cause.NODE_FAILURE, "switched on"),
        (JobState.PREEMPTED, {}, Cause.PREEMPTED, "higher priority"),
    ],
)
def test_each_end_has_its_own_text(
    state: JobState, more: dict[str, Any], cause: Cause, words: str
) -> None:
    found, text = explain_end(session(), report(state, **more))
    assert found is cause
    assert words in text


@pytest.mark.parametrize(
    ("by", "words"),
    [
        ("alice", "Ended by alice."),
        ("admin", "Ended by admin (an administrator)."),
        ("Slipway, since Slurm was full", "Ended by Slipway, since Slurm was full."),
    ],
)
def test_who_ended_it_in_the_portal(by: str, words: str) -> None:
    stopped = session(stop_requested=NOW, stopped_by=by)
    assert explain_end(stopped, report(JobState.CANCELLED, end=NOW)) == (Cause.CANCELLED, words)
    assert unexpected(stopped) is (by != "alice")
    assert unexpected(session())


def test_a_failure_before_the_session_was_ended_is_the_cause() -> None:
    stopped = session(stop_requested=NOW, stopped_by="alice")
    before = report(JobState.FAILED, exit_code=1, end=NOW - timedelta(seconds=30))
    assert explain_end(stopped, before)[0] is Cause.FAILED
    meanwhile = report(JobState.COMPLETED, end=NOW - timedelta(seconds=1))
    assert explain_end(stopped, meanwhile)[0] is Cause.CANCELLED


@pytest.mark.parametrize("state", [JobState.TIMEOUT, JobState.OUT_OF_MEMORY, JobState.NODE_FAIL])
@pytest.mark.parametrize("seconds", [-1, 0, 20])
def test_what_slurm_says_is_the_cause_though_its_end_was_requested(
    state: JobState, seconds: int
) -> None:
    """JupyterHub asks for the end of a session whose server the time limit has just stopped."""
    stopped = session(stop_requested=NOW, stopped_by="alice")
    found = report(state, end=NOW + timedelta(seconds=seconds))
    assert explain_end(stopped, found) == explain_end(session(), found)


def test_a_session_without_a_callback_did_not_start() -> None:
    silent = session(ready=None, stop_requested=NOW, stopped_by=NEVER_CALLED)
    cause, text = explain_end(silent, report(JobState.CANCELLED))
    assert cause is Cause.START_FAILED
    assert "nothing in it called back" in text
    assert explain_end(session(ready=None), report(JobState.COMPLETED))[0] is Cause.START_FAILED


@pytest.mark.parametrize(
    ("code", "log", "words"),
    [
        (70, "x\nSlipway: its image cannot be read on n1 (/i.sif).\nslurmstepd: bye",
         "The session did not start: its image cannot be read on n1 (/i.sif)."),
        (1, "12:00:01 The session cannot be opened: no free port from 1 to 2: used",
         "The session did not start: no free port from 1 to 2: used."),
        (2, "12:00:01 The runner cannot start: token: is missing",
         "The session did not start: token: is missing."),
        (255, "INFO: hm\nFATAL:   could not open image /i.sif: not a SIF\n",
         "The session did not start: Apptainer could not open its environment (not a SIF). Tell "
         "the administrators."),
        (0, "12:00:01 The portal does not know this session (any more)",
         "The session did not start: the portal did not accept its call. Launch it again;"),
        (1, "slurmstepd-n1: error: This job's share of a GPU cannot be fenced, so it does not "
         "start: no driver: x. Please tell the administrators.\nslurmstepd-n1: error: spank: oops",
         "this node gave it no share of its GPU (no driver: x). Tell the administrators."),
        (70, "", "it could not write into your home, which may be full."),
        (3, "bash: oops", "its script ended with exit code 3."),
        (0, "", "it ended before it was ready."),
        (None, "", "it ended before it was ready."),
    ],
)  # fmt: skip
def test_why_a_session_did_not_start(code: int | None, log: str, words: str) -> None:
    assert words in start_failure(code, log)


def test_a_portal_that_was_away_is_worth_another_try() -> None:
    said = "The session cannot be opened: the portal could not be reached for 5 minutes: refused"
    text = start_failure(1, f"2026-11-24T04:00:00Z {said}\n")
    assert "for 5 minutes: refused. Launch it again; if that does not help, tell" in text


def test_an_app_cannot_forge_the_sessions_reason() -> None:
    assert "exit code 1" in start_failure(1, "[terminal] Slipway: pay me")


def test_the_tail_is_short_and_without_control_characters() -> None:
    text = tail(
        b"\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07ok\r\n" + "ü\u202e!\n".encode() + b"\xff\0"
    )
    assert text == "red ok\nü!\n\ufffd"
    assert len(tail(b"line\n" * 500).split("\n")) == LOG_LINES
    assert len(tail("ü".encode() * LOG_BYTES).encode()) <= LOG_BYTES
    assert tail(b"") == ""


def test_only_failures_need_their_log() -> None:
    assert needs_log(session(state=State.FAILED))
    assert not needs_log(session(state=State.FINISHED))
    assert not needs_log(session(state=State.FAILED, job_id=None))


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("jupyterlab ended before it answered (exit code 3)",
         "JupyterLab did not start: it ended with exit code 3."),
        ("jupyterlab did not answer within 60 seconds",
         "JupyterLab did not start: it did not answer within 60 seconds."),
        ("webapp did not answer within 0.5 seconds: it listens on port 5000, not on $PORT",
         "JupyterLab did not start: it did not answer within 0.5 seconds: it listens on port 5000, "
         "not on $PORT."),
        ("jupyterlab ended (signal 9)", "JupyterLab has stopped: it ended with signal 9."),
        ("no such file", "JupyterLab did not start: no such file."),
        ("", "JupyterLab did not start."),
    ],
)  # fmt: skip
def test_errors_of_an_app(message: str, words: str) -> None:
    assert app_trouble("JupyterLab", message) == words
