"""A session's displayed state, the same in pages and in the REST API."""

from __future__ import annotations

from datetime import datetime, timedelta

from portal.core.cluster.usage import SlurmStatus
from portal.core.session.end_reasons import LOG_SAYS
from portal.core.session.holders import NOTHING, Holdings, explain_waiting
from portal.core.session.idle import notice_changes
from portal.core.session.pending_reasons import Reason, explain_reason, maintenance_reason
from portal.core.session.session import OVER, SUSPENDED, Session, State
from portal.core.site_rules import SiteRules

SILENT_AFTER = timedelta(seconds=15)
"""Maximum age of Slurm's last answer before states are shown as UNKNOWN."""

QUIET_SECONDS = 30.0
"""Longest time that the portal lets pass between two reports of a runner."""
LOST_SECONDS = 30.0
"""How long a runner may take to find that a report is lost: it waits for an answer on the kept
connection, then on a new one (ANSWER_TIMEOUT in node/runner/callback.py)."""
USUAL_SECONDS = 10.0
"""After which it sends the next one; `sessions.heartbeat_seconds`, usually."""
NODE_SILENT_AFTER = timedelta(seconds=QUIET_SECONDS + LOST_SECONDS + USUAL_SECONDS + 5)
"""Maximum age of a runner's last report: a single loss, and a slow answer to the next, are no
silence."""
SOON = timedelta(seconds=10)
"""When to look again at what may change at any moment without a change of what is shown."""
ENDS_SOON = timedelta(minutes=15)
"""How long before the end a warning is shown."""

UNKNOWN = "UNKNOWN"
STILL_TRYING = "It ends by itself if it cannot start within some minutes."
"""Advice shown with the last log line of a session that is slow to start."""
PULLED_ONCE = "Your next session with this image starts at once. To stop, end this one."
"""Advice shown while a session's job pulls its image."""


def unknown_since(session: Session, status: SlurmStatus, now: datetime) -> datetime | None:
    """Since when a live session's state has been unknown; None while it is known."""
    if session.state in OVER or status.answered is None:
        return None
    if _slurm_silent(status, now):
        return status.failing_since or status.answered
    return session.lost


def _slurm_silent(status: SlurmStatus, now: datetime) -> bool:
    return status.answered is not None and now - status.answered > SILENT_AFTER


def silent_parts(status: SlurmStatus, now: datetime) -> int:
    """Who has been silent for so long that pages say so: 1 the worker, plus 2 Slurm; 0 nobody."""
    return status.worker_down(now) + 2 * _slurm_silent(status, now)


def shown_state(session: Session, status: SlurmStatus, now: datetime) -> str:
    """One of PENDING, STARTING, RUNNING, ENDING, FINISHED, FAILED, UNKNOWN."""
    if unknown_since(session, status, now) is not None:
        return UNKNOWN
    return State.PENDING if session.state is State.SUBMITTING else session.state


def shown_reason(
    session: Session, status: SlurmStatus, now: datetime, holdings: Holdings = NOTHING
) -> Reason | None:
    """Why a session is not running yet, or why its state is unknown."""
    since = unknown_since(session, status, now)
    if since is not None and since == session.lost:
        return Reason(
            "JobUnknown",
            "Slurm's queue no longer has the job, and its accounting does not answer.",
            "Open apps go on if the job does; the state shows again with accounting.",
        )
    if since is not None:
        return _unknown_reason(status, since, now)
    match session.state:
        case State.SUBMITTING:
            return Reason("Submitting", "It is being handed to Slurm.")
        case State.PENDING:
            return _waits(session, explain_waiting(session, status, holdings), now)
        case State.STARTING | State.RUNNING if session.pending_reason == SUSPENDED:
            return explain_reason(SUSPENDED)
        case State.STARTING:
            if session.progress.startswith(LOG_SAYS):
                return Reason("Starting", session.progress, STILL_TRYING)
            if session.progress:
                return Reason("Starting", f"{session.progress}.", PULLED_ONCE)
            return Reason("Starting", "The container is starting.")
        case State.RUNNING:
            return _node_silent(session, now)
        case _:
            return None


def _unknown_reason(status: SlurmStatus, since: datetime, now: datetime) -> Reason:
    """Why the state is unknown: the worker does not run, or Slurm does not answer it."""
    if status.worker_down(now):
        return Reason(
            "WorkerDown",
            f"The portal's background process has not been running since {since:%H:%M:%S} UTC.",
            "Sessions and open apps go on; an administrator has to start it again.",
        )
    return Reason(
        "SlurmDown",
        f"Slurm has not answered since {since:%H:%M:%S} UTC.",
        "Open apps go on; the state shows again when Slurm is back.",
    )


def _waits(session: Session, reason: Reason, now: datetime) -> Reason:
    if session.requeued is None:
        # Right after its start was moved, Slurm says "None".
        postponed = session.begin is not None and reason.code in ("BeginTime", "None")
        return maintenance_reason(session.begin, now) if session.begin and postponed else reason
    again = (
        f"Slurm put it back into the queue at {session.requeued:%H:%M} UTC; "
        "it starts again with an empty home."
    )
    if reason.code == "BeginTime":  # Slurm waits two minutes before it restarts a requeued job
        return Reason(reason.code, again, "This takes minutes.")
    return Reason(reason.code, f"{again} {reason.text}", reason.advice)


def is_node_silent(session: Session, now: datetime) -> bool:
    """Whether a running session's node has not reported for too long."""
    return now - _last_report(session, now) > NODE_SILENT_AFTER


def _last_report(session: Session, now: datetime) -> datetime:
    return max(filter(None, (session.usage_at, session.ready)), default=now)


def _node_silent(session: Session, now: datetime) -> Reason | None:
    if not is_node_silent(session, now):
        return None
    last_report = _last_report(session, now)
    return Reason(
        "NodeSilent",
        f"The node has not reported since {last_report:%H:%M:%S} UTC; open apps may not answer.",
        "If it lasts, end the session and launch it again.",
    )


def next_change(session: Session, rules: SiteRules, now: datetime) -> datetime | None:
    """When pages show a session differently although nothing is stored; None if never."""
    if session.state is not State.RUNNING:
        return None
    times = [_last_report(session, now) + NODE_SILENT_AFTER, *notice_changes(session, rules)]
    if session.deadline is not None:
        times.append(session.deadline - ENDS_SOON)
    return min((time for time in times if time > now), default=None)


def ends_soon(session: Session, now: datetime) -> bool:
    """Whether a running session is so near its end that a warning is shown."""
    deadline = session.deadline if session.state is State.RUNNING else None
    return deadline is not None and deadline - now <= ENDS_SOON


def is_unlimited(session: Session) -> bool:
    """Whether it has no time limit; Slurm says when a running one reaches its limit."""
    if session.state is State.RUNNING:
        return session.deadline is None
    requested = session.time_limit is None and session.partition is not None
    return requested and session.deadline is None


def shown_limit(session: Session) -> int | None:
    """The time limit in minutes: Slurm's, once the session runs. None if there is none yet."""
    if session.deadline is not None and session.started is not None:
        return round((session.deadline - session.started).total_seconds() / 60)
    return None if is_unlimited(session) else session.time_limit


def elapsed(session: Session, now: datetime) -> timedelta | None:
    """How long a session has been running, or ran."""
    if session.started is None:
        return None
    return max((session.ended or now) - session.started, timedelta(0))
