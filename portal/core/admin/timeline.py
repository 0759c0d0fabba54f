"""The timeline of a session, from its fields and the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from portal.core.admin.audit import AuditEvent
from portal.core.session.session import OVER, Session

EVENTS = ("session.extend", "session.keep", "session.release", "app.publish", "app.unpublish")
"""Actions of the audit log that a timeline shows."""
_TITLES = {
    "session.keep": "Kept although unused",
    "session.release": "Released",
    "app.publish": "App opened to everybody",
    "app.unpublish": "App made private",
}


@dataclass(frozen=True)
class Moment:
    """One line of a timeline."""

    at: datetime
    title: str
    detail: str = ""


def timeline(session: Session, events: Iterable[AuditEvent]) -> list[Moment]:
    """The events of a session, oldest first."""
    moments = [*_own_moments(session), *(_of(session, event) for event in events)]
    return sorted(moments, key=lambda moment: moment.at)


def _own_moments(session: Session) -> Iterator[Moment]:
    preset = f"from the preset {session.preset}" if session.preset else ""
    yield Moment(session.created, "Requested", preset)
    if session.job_id:
        yield Moment(session.submitted, "Queued", f"as job {session.job_id}")
    if session.requeued:
        yield Moment(session.requeued, "Put back into the queue", "by Slurm")
    if session.started:
        # Slurm's times have no fractions of a second, so it may seem to start before it was queued.
        started = max(session.started, session.submitted)
        yield Moment(started, "Started", f"on {session.node}" if session.node else "")
    if session.ready:
        yield Moment(session.ready, "Ready")
    if session.oom_at:
        yield Moment(session.oom_at, "Process stopped for memory", session.oom_program)
    if session.stop_requested:
        by = "you" if session.stopped_by == session.owner else session.stopped_by or ""
        yield Moment(session.stop_requested, "End requested", f"by {by}" if by else "")
    if session.ended and session.state in OVER:
        yield Moment(max(session.ended, session.stop_requested or session.ended), "Ended")


def _of(session: Session, event: AuditEvent) -> Moment:
    by = "" if event.who == session.owner else f"by {event.who}"
    if event.action == "session.extend":
        return Moment(event.time, "Extended", f"by {event.detail} {by}".rstrip())
    return Moment(event.time, _TITLES[event.action], by)
