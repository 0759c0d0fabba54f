"""Ends without their owner's request, in words, and what the next session gets more of."""

from __future__ import annotations

import pytest

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.launch.mounts import Mount
from portal.core.session.ended_lately import (
    Shortage,
    how_it_ended,
    kept_text,
    larger,
    longer,
    shortage,
    shows_memory_kill,
    why_it_ended,
)
from portal.core.session.session import Cause, State
from portal.core.session.transitions import end, finish_unsubmitted
from tests.support.stored_sessions import NOON, ended_session


@pytest.mark.parametrize("cause", Cause)
def test_every_cause_is_said(cause: Cause) -> None:
    assert how_it_ended(ended_session(cause=cause))


def test_an_end_by_others_is_explained_and_ones_own_is_not() -> None:
    by_admin = ended_session(cause=Cause.CANCELLED, stopped_by="admin")
    own = ended_session(cause=Cause.CANCELLED, stopped_by="alice")
    assert (how_it_ended(by_admin), why_it_ended(by_admin)) == ("was ended", "The explanation.")
    assert (how_it_ended(own), why_it_ended(own)) == ("was ended by you", "")
    assert why_it_ended(ended_session()) == ""


def test_what_was_kept_is_named() -> None:
    data, other = Mount(folder="climate-2026"), Mount(folder="more")
    read_only = Mount(folder="shared", read_only=True)
    assert kept_text(ended_session(mounts=(data, read_only))) == "climate-2026 was kept."
    assert kept_text(ended_session(mounts=(data, other))) == "climate-2026 and more were kept."
    assert (
        kept_text(ended_session(mounts=(Mount(folder="home"),))) == "Your home directory was kept."
    )
    assert kept_text(ended_session()) == "Its files were deleted."
    assert kept_text(ended_session(ready=None)) == ""


def test_twice_as_much_within_the_limits() -> None:
    assert longer(ended_session(), None) == 120
    assert longer(ended_session(), 90) == 90
    assert longer(ended_session(), 60) is None
    assert longer(ended_session(deadline=None), 90) is None
    assert larger(ended_session(), 1000) == 1000
    assert larger(ended_session(memory_mb=1000), 1000) is None
    assert larger(ended_session(memory_mb=600), None) == 1536  # and not 1200 MB, 1.17 GB
    assert larger(ended_session(memory_mb=1024), None) == 2048
    assert shortage(ended_session()) is Shortage.TIME
    assert shortage(ended_session(cause=Cause.OUT_OF_MEMORY)) is Shortage.MEMORY
    assert shortage(ended_session(cause=Cause.PREEMPTED)) is None


def test_the_notice_of_a_kill_shows_until_it_is_dismissed() -> None:
    assert not shows_memory_kill(ended_session())
    assert shows_memory_kill(ended_session(oom_kills=1))
    assert not shows_memory_kill(ended_session(oom_kills=1, oom_seen=NOON))


@pytest.mark.parametrize(
    ("stopped_by", "cancelled_by", "state", "seen"),
    [
        ("alice", None, JobState.CANCELLED, True),
        ("admin", None, JobState.CANCELLED, False),
        (None, "alice", JobState.CANCELLED, True),
        (None, "root", JobState.CANCELLED, False),
        (None, None, JobState.TIMEOUT, False),
    ],
)
def test_only_ones_own_ends_count_as_seen(
    stopped_by: str | None, cancelled_by: str | None, state: JobState, seen: bool
) -> None:
    known = ended_session(
        state=State.ENDING if stopped_by else State.RUNNING,
        cause=None,
        stopped_by=stopped_by,
        stop_requested=NOON if stopped_by else None,
    )
    report = JobReport(job_id="7", user="alice", state=state, end=NOON, cancelled_by=cancelled_by)
    changes = end(known, report, NOON).changes
    assert (changes.get("end_seen") is not None) is seen


def test_an_end_before_slurm_had_the_job_is_ones_own_or_not() -> None:
    for who in ("alice", "admin"):
        ending = ended_session(state=State.ENDING, stopped_by=who, stop_requested=NOON)
        seen = finish_unsubmitted(ending, NOON).changes.get("end_seen")
        assert (seen is not None) is (who == "alice")
