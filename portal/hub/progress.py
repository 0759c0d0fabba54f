"""A session's state as JupyterHub's state and progress messages."""

from __future__ import annotations

from dataclasses import dataclass

from portal.client import Reason, Session
from portal.hub.refusals import ENDED, Refusal

GONE = ("failed", "stopped")
"""States of a server that does not run any more."""


@dataclass(frozen=True)
class Step:
    """A progress message, with the progress in percent."""

    percent: int
    text: str


def steps_of(session: Session, app: str) -> list[Step]:
    """Progress messages for a session; the last one is current."""
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
    """Whether the session runs without its server, which JupyterHub cannot show."""
    app = session.app(name)
    return session.state == "RUNNING" and app is not None and app.state in GONE


def exit_code(session: Session) -> int | None:
    """The result of poll(): None while the session is live."""
    if not session.is_over:
        return None
    return (session.end and session.end.exit_code) or (0 if session.state == "FINISHED" else 1)


def answers(session: Session, name: str) -> bool:
    """Whether the server answers; raises Refusal if it never will."""
    if session.is_over:
        raise Refusal(ENDED, (session.end and session.end.text) or "The session has ended.")
    app = session.app(name)
    if app is None and session.state == "RUNNING":
        raise Refusal(
            400,
            "This environment has no jupyterhub-singleuser. Choose another one, or ask for "
            "JupyterHub to be installed in its image.",
        )
    if app is not None and app.state in GONE:
        raise Refusal(ENDED, app.message or "JupyterHub's server has ended.")
    return app is not None and app.state == "ready"
