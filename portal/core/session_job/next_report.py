"""When a session's runner is to report next: often only while its reports matter at once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from portal.core.apps.access import AppState
from portal.core.session.countdown import Countdown
from portal.core.session.session import Session
from portal.core.session.status import QUIET_SECONDS

WATCHED = timedelta(seconds=150)
"""Age of the last recorded use of a browser, or of its visible pages, after which these count as
closed or hidden: a visible page's polls reach the application once a minute, and at once when it is
shown (web/http/unchanged.py), and are recorded once a minute."""
NEAR_END = 16 * 60
"""Seconds; terminals show a message 15 minutes before the end."""
_AWAITED = (AppState.WANTED, AppState.STARTING)


def seconds_to_next(
    session: Session, end: Countdown, left: int | None, apps: Collection[AppState], watched: bool
) -> float | None:
    """The longest pause before the next report; None for the usual one.

    `left`: seconds until its end. `watched`: whether its owner has a visible page of the portal.
    """
    awaited = session.ready is None or session.extending is not None
    awaited |= end.unused or any(state in _AWAITED for state in apps)
    near = left is not None and left < NEAR_END
    return None if watched or awaited or near else QUIET_SECONDS
