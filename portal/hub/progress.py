"""What a session's state means for JupyterHub, and what its page of a starting server says."""

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


def server_has_ended(session: Session, name: str) -> bool:
    """Whether only the rest of the session is left, which JupyterHub cannot show."""
    app = session.app(name)
    return session.state == "RUNNING" and app is not None and app.state in ("failed", "stopped")


def exit_code(session: Session) -> int | None:
    """What poll() tells; None while the session lives."""
    if not session.is_over:
        return None
    return (session.end and session.end.exit_code) or (0 if session.state == "FINISHED" else 1)


def how_it_ended(session: Session) -> str:
    """The words for a start that came to nothing."""
    text = session.end.text if session.end else ""
    return text or "The session has ended."
