"""What the page of a starting server says."""

from __future__ import annotations

from dataclasses import dataclass

from portal.client import Reason, Session


@dataclass(frozen=True)
class Step:
    """One line, and how far the start is in percent."""

    percent: int
    text: str


def steps_of(session: Session, app: str) -> list[Step]:
    """What to say about a session; the last line is the current one."""
    if session.state in ("PENDING", "UNKNOWN"):
        return [Step(10, _waiting(session.reason))]
    if session.state == "STARTING":
        return [
            Step(50, f"Slurm has started job {session.job_id or ''} on {session.node or 'a node'}")
        ]
    if session.state == "RUNNING":
        server = session.app(app)
        if server is not None and server.message:
            return [Step(80, server.message)]
        return [Step(80, "The session runs; the server is starting")]
    return []


def _waiting(reason: Reason | None) -> str:
    if reason is None:
        return "Slurm has the job in its queue"
    parts = [reason.text, reason.advice]
    if reason.ahead:
        parts.append(f"{reason.ahead} {'job is' if reason.ahead == 1 else 'jobs are'} ahead.")
    if reason.estimated_start:
        parts.append(f"Slurm's estimate: {reason.estimated_start:%Y-%m-%d %H:%M} UTC.")
    return " ".join(part for part in parts if part)
