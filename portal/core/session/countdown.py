"""The end of a running session, as shown inside it: in terminals and in JupyterLab."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal.core.session.idle import idle_notice
from portal.core.session.retention import retention
from portal.core.session.session import Session
from portal.core.site_rules import SiteRules
from portal.core.units import short_minutes

CHOICES = (60, 240)
"""Minutes by which people extend a session."""


@dataclass(frozen=True)
class Countdown:
    """The expected end of a session."""

    ends: datetime | None
    """None if it does not end by itself."""
    unused: bool = False
    """Whether it ends because it is unused."""


def countdown(session: Session, rules: SiteRules, now: datetime) -> Countdown:
    """The earlier of two ends: by the time limit, or for idleness once its warning is shown."""
    idle = idle_notice(session, rules, now)
    if idle is not None and idle.warned:
        return Countdown(idle.ends, unused=True)
    return Countdown(session.deadline)


def extension_choices(room: int | None) -> list[tuple[int, str]]:
    """Minutes by which a session can be extended, with their texts; `room`: None for no limit."""
    choices = [(m, f"{m // 60} h more") for m in CHOICES if room is None or m < room]
    if room:
        choices.append((room, f"as long as possible: {short_minutes(room)} more"))
    return choices


def retention_text(session: Session) -> str:
    """Describe which files stay after the end and which are deleted."""
    files = retention(session)
    return " ".join(filter(None, (files.stays, files.goes)))
