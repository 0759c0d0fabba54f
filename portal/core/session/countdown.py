"""When a running session ends, for people inside of it: in terminals and in JupyterLab."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from portal.core.session.idle import idle_notice
from portal.core.session.kept import kept
from portal.core.session.session import Session
from portal.core.site_rules import SiteRules
from portal.core.units import short_minutes

CHOICES = (60, 240)
"""Minutes by which people extend a session."""


@dataclass(frozen=True)
class Countdown:
    """A session's end, as far as it is known."""

    ends: datetime | None
    """None if it does not end by itself."""
    unused: bool = False
    """Whether it ends because nobody uses it."""


def countdown(session: Session, rules: SiteRules, now: datetime) -> Countdown:
    """The end that comes first: of the time limit, or of idleness once that is near."""
    idle = idle_notice(session, rules, now)
    if idle is not None and idle.warned:
        return Countdown(idle.ends, unused=True)
    return Countdown(session.deadline)


def extension_choices(room: int | None) -> list[tuple[int, str]]:
    """Minutes by which a session can be extended, with their texts; `room`: None for no limit."""
    found = [(m, f"{m // 60} h more") for m in CHOICES if room is None or m < room]
    if room:
        found.append((room, f"as long as possible: {short_minutes(room)} more"))
    return found


def what_is_kept(session: Session) -> str:
    """What stays after the end and what is deleted."""
    found = kept(session)
    return " ".join(filter(None, (found.stays, found.goes)))
