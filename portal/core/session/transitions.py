"""What Slurm's word about its job does to a session."""

from __future__ import annotations

from datetime import datetime, timedelta

from portal.core.cluster.jobs import JobReport, JobState
from portal.core.session.end_reasons import explain_end
from portal.core.session.session import (
    NO_METERS,
    NOT_WAITING,
    SUSPENDED,
    Cause,
    Changes,
    Session,
    State,
)

START_PATIENCE = timedelta(minutes=15)
"""How long a job may run without its runner calling back; the runner itself gives up after ten."""


def apply_report(session: Session, report: JobReport, now: datetime) -> Changes:
    """Say what Slurm's report of the job changes in a live session; nothing new gives {}."""
    if report.state.over:
        return _ended(session, report, now)
    changes: Changes = {"job_id": report.job_id, "lost": None}
    again = was_requeued(session, report)
    if again:
        changes |= _requeued(session, report, now)
    # A wish to end it stays; a job that was completing may be put back into the queue.
    if session.stop_requested is None:
        changes["state"] = _live_state(session.ready is not None and not again, report.state)
    if report.state is JobState.PENDING:
        changes |= {
            "pending_reason": report.reason,
            "estimated_start": report.start,
            "ahead": report.ahead,
        }
    else:
        changes |= {**NOT_WAITING, "started": report.start, "deadline": report.deadline}
        if report.state is JobState.SUSPENDED:
            changes["pending_reason"] = SUSPENDED
        if report.nodes:
            changes["node"] = report.nodes[0]
    return {key: value for key, value in changes.items() if getattr(session, key) != value}


def was_requeued(session: Session, report: JobReport) -> bool:
    """Whether Slurm has put the job back into its queue since the last look.

    While the old run is still completing, it is too early: its script takes the folder away.
    """
    if report.state.over or report.state is JobState.COMPLETING:
        return False
    back = report.state is JobState.PENDING and session.started is not None
    return back or report.restarts > session.restarts


def never_called(session: Session, now: datetime) -> bool:
    """Whether a started session has been silent for so long that it will never be heard of."""
    waiting = session.state is State.STARTING and session.started is not None
    return waiting and now - (session.started or now) > START_PATIENCE


def _requeued(session: Session, report: JobReport, now: datetime) -> Changes:
    """All of the first run is gone: its secret, its address, its figures."""
    return {
        "restarts": max(report.restarts, session.restarts + 1),
        "requeued": now,
        "token_hash": "",
        "ready": None,
        "started": None,
        "deadline": None,
        "node": None,
        "address": None,
        "port": None,
        **NO_METERS,
    }


def _live_state(ready: bool, state: JobState) -> State:
    if state is JobState.PENDING:
        return State.PENDING
    if state is JobState.COMPLETING:
        return State.ENDING
    return State.RUNNING if ready else State.STARTING


def _ended(session: Session, report: JobReport, now: datetime) -> Changes:
    cause, text = explain_end(session, report)
    failed = cause not in (Cause.FINISHED, Cause.CANCELLED, Cause.TIME_LIMIT, Cause.IDLE)
    return {
        "state": State.FAILED if failed else State.FINISHED,
        "job_id": report.job_id,
        "started": session.started or report.start,
        "ended": report.end or now,
        "cause": cause,
        "end_text": text,
        "exit_code": report.exit_code,
        **NOT_WAITING,
    }
