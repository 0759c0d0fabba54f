"""The state machine of a session: every transition, with the states it may start from.

    SUBMITTING ──► PENDING ──► STARTING ──► RUNNING ──► ENDING ──► FINISHED | FAILED
                      ▲            │           │
                      └── requeue ─┴───────────┘

A session is created SUBMITTING. Slurm's reports move it in any direction (`apply_report`); users,
the idle culler and the worker can only request its end (`stop`). ENDING lasts until Slurm reports
that the job is over. No other module writes a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import cast

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.session.end_reasons import ended_by_owner, explain_end
from portal.core.session.session import (
    LIVE,
    NEVER_CALLED,
    NO_METERS,
    SUSPENDED,
    UNUSED,
    WAITING,
    Cause,
    Changes,
    Facts,
    Session,
    State,
)

START_TIMEOUT = timedelta(minutes=15)
"""How long a job may run before its runner calls back; the runner itself gives up after
`sessions.callback_minutes`, ten at most."""
STOPPABLE = WAITING | {State.RUNNING}
"""States in which a session's end can still be requested."""
NOT_PENDING: Facts = {"pending_reason": None, "estimated_start": None, "ahead": None}


@dataclass(frozen=True)
class Transition:
    """A change of state, applied only if the stored session still matches.

    The fields in `expected` must still have these values (compare and set), so that only one of
    two concurrent changes is applied.
    """

    from_states: frozenset[State]
    changes: Changes
    expected: Mapping[str, object] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether it changes anything."""
        return bool(self.changes)

    def fits(self, session: Session) -> bool:
        """Whether it may be applied to the session as stored."""
        same = all(getattr(session, name) == value for name, value in self.expected.items())
        return session.state in self.from_states and same


def claim_first(now: datetime) -> Transition:
    """The process that stored it submits it, unless the worker has begun to."""
    changes = Changes(submitted=now, attempts=1)
    return Transition(frozenset({State.SUBMITTING}), changes, {"attempts": 0})


def claim_again(session: Session, now: datetime, token_hash: str) -> Transition:
    """The worker submits it, unless another process has begun to, or said that it will."""
    changes = Changes(submitted=now, token_hash=token_hash, attempts=session.attempts + 1)
    expected = {"submitted": session.submitted, "attempts": session.attempts}
    return Transition(frozenset({State.SUBMITTING}), changes, expected)


def submitted(job_id: str) -> Transition:
    """Slurm has accepted the job."""
    return Transition(frozenset({State.SUBMITTING}), Changes(state=State.PENDING, job_id=job_id))


def ready(
    session: Session, proof: Facts, port: int, apps: tuple[str, ...], now: datetime
) -> Transition:
    """The gateway has called back; `proof` is what Slurm reports about its job. Idempotent."""
    changes = Changes(
        state=State.RUNNING,
        port=port,
        ready=session.ready or now,
        last_used=now,
        apps=apps,
    )
    return Transition(STOPPABLE, _merge(changes, NOT_PENDING, proof))


def stop(by: str, now: datetime, reason: str = "") -> Transition:
    """A user requests its end, for a reason; the job is cancelled afterwards."""
    changes = Changes(state=State.ENDING, stop_requested=now, stopped_by=by, stop_reason=reason)
    return Transition(STOPPABLE, changes)


def stop_unused(session: Session, now: datetime) -> Transition:
    """The idle culler ends it, unless it has been used since it was read."""
    changes = Changes(state=State.ENDING, stop_requested=now, stopped_by=UNUSED)
    expected = {"last_used": session.last_used}
    return Transition(frozenset({State.RUNNING}), changes, expected)


def stop_unheard(now: datetime) -> Transition:
    """Its job is running, but its runner has never called back (see `never_called`)."""
    changes = Changes(state=State.ENDING, stop_requested=now, stopped_by=NEVER_CALLED)
    return Transition(frozenset({State.STARTING}), changes)


def finish_unsubmitted(session: Session, now: datetime) -> Transition:
    """Its end was requested before Slurm had its job."""
    return _finished(session, "Ended before it reached Slurm.", now)


def finish_unknown(session: Session, now: datetime) -> Transition:
    """Its end was requested, and Slurm has no job of it: it never had one, or has purged it."""
    by = session.stopped_by or session.owner
    why = f": {session.stop_reason}" if session.stop_reason else ""
    text = f"Ended by {by}{why}. Slurm knows no job of this session."
    return _finished(session, text, now, {"job_id": session.job_id})


def _finished(
    session: Session, text: str, now: datetime, expected: Mapping[str, object] | None = None
) -> Transition:
    changes = Changes(state=State.FINISHED, ended=now, cause=Cause.CANCELLED, end_text=text)
    if session.stopped_by == session.owner:
        changes["end_seen"] = now
    return Transition(frozenset({State.ENDING}), changes, expected or {})


def fail_to_start(text: str, now: datetime) -> Transition:
    """Slurm did not accept its job."""
    changes = Changes(state=State.FAILED, ended=now, cause=Cause.START_FAILED, end_text=text)
    return Transition(LIVE, changes)


def follow(session: Session, report: JobReport, now: datetime) -> Transition:
    """Apply Slurm's report, only to the state that was read: a call-back may be concurrent."""
    return Transition(frozenset({session.state}), apply_report(session, report, now))


def adopt(session: Session, report: JobReport, now: datetime) -> Transition:
    """Its job was found by name; the stored job id, if any, was wrong."""
    expected = {"job_id": session.job_id}
    return Transition(LIVE, apply_report(session, report, now), expected)


def end(session: Session, report: JobReport, now: datetime) -> Transition:
    """Slurm reports that the job is over; applies to every live state."""
    return Transition(LIVE, apply_report(session, report, now))


def apply_report(session: Session, report: JobReport, now: datetime) -> Changes:
    """The changes to a live session from Slurm's report about its job; {} if none."""
    if report.state.over:
        return _over(session, report, now)
    changes = Changes(job_id=report.job_id, lost=None)
    requeued = was_requeued(session, report)
    if requeued:
        changes = _merge(changes, _requeued(session, report, now))
    # A request to end it remains; a completing job may still be requeued.
    if session.stop_requested is None:
        changes["state"] = _live_state(session.ready is not None and not requeued, report.state)
    if report.state is JobState.PENDING:
        waits = Facts(
            pending_reason=report.reason, estimated_start=report.start, ahead=report.ahead
        )
        changes = _merge(changes, waits)
    else:
        changes = _merge(
            changes, NOT_PENDING, Facts(started=report.start, deadline=report.deadline)
        )
        if report.state is JobState.SUSPENDED:
            changes["pending_reason"] = SUSPENDED
        if report.nodes:
            changes["node"] = report.nodes[0]
    news = {name: value for name, value in changes.items() if getattr(session, name) != value}
    return cast(Changes, news)


def was_requeued(session: Session, report: JobReport) -> bool:
    """Whether Slurm has requeued the job since the last poll.

    False while the old run is still completing: its script deletes the session's folder.
    """
    if report.state.over or report.state is JobState.COMPLETING:
        return False
    back = report.state is JobState.PENDING and session.started is not None
    return back or report.restarts > session.restarts


def never_called(session: Session, now: datetime) -> bool:
    """Whether a session has been STARTING without any news for longer than START_TIMEOUT."""
    if session.state is not State.STARTING or session.started is None:
        return False
    # Pulling an image may take longer. A runner that reports its use is alive, even if a portal
    # restored from a backup does not know its address yet; so is one that was just adopted.
    news = (session.started, session.submitted, session.progress_at, session.usage_at)
    return now - max(filter(None, news)) > START_TIMEOUT


def _requeued(session: Session, report: JobReport, now: datetime) -> Facts:
    """Reset the fields of the previous run: its secret, address and meters."""
    return Facts(
        restarts=max(report.restarts, session.restarts + 1),
        requeued=now,
        token_hash="",
        ready=None,
        started=None,
        progress="",
        progress_at=None,
        deadline=None,
        node=None,
        address=None,
        port=None,
        **NO_METERS,
    )


def _live_state(ready: bool, state: JobState) -> State:
    if state is JobState.PENDING:
        return State.PENDING
    if state is JobState.COMPLETING:
        return State.ENDING
    return State.RUNNING if ready else State.STARTING


def _over(session: Session, report: JobReport, now: datetime) -> Changes:
    cause, text = explain_end(session, report)
    failed = cause not in (Cause.FINISHED, Cause.CANCELLED, Cause.TIME_LIMIT, Cause.IDLE)
    changes = Changes(
        state=State.FAILED if failed else State.FINISHED,
        job_id=report.job_id,
        started=session.started or report.start,
        ended=report.end or now,
        cause=cause,
        end_text=text,
        exit_code=report.exit_code,
    )
    if ended_by_owner(session, report, cause):
        changes["end_seen"] = changes["ended"]
    return _merge(changes, NOT_PENDING)


def _merge(changes: Changes, *more: Facts) -> Changes:
    merged = Changes(**changes)
    for facts in more:
        merged.update(cast(Changes, facts))
    return merged
