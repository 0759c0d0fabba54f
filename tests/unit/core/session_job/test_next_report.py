"""When a runner is to report next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.core.apps.access import AppState
from portal.core.session.countdown import Countdown
from portal.core.session.idle import UNWATCHED
from portal.core.session.session import Session, State
from portal.core.session.status import NODE_SILENT_AFTER, QUIET_SECONDS
from portal.core.session_job.next_report import seconds_to_next
from portal.node.runner.callback import ANSWER_TIMEOUT
from portal.services.session.adoption import HEARTBEAT_LIMIT
from tests.support.stored_sessions import numbered_session

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
RUNNING = numbered_session(1, state=State.RUNNING).model_copy(update={"ready": NOON})
LATER = Countdown(NOON + timedelta(hours=1))
USUAL = 10
"""Seconds; sessions.heartbeat_seconds."""


def test_a_quiet_session_reports_rarely() -> None:
    apps = [AppState.READY, AppState.STOPPED, AppState.FAILED]
    assert seconds_to_next(RUNNING, LATER, 3600, apps, watched=False) == QUIET_SECONDS
    assert seconds_to_next(RUNNING, Countdown(None), None, [], watched=False) == QUIET_SECONDS


@pytest.mark.parametrize(
    ("session", "end", "left", "app", "watched"),
    [
        (RUNNING, LATER, 3600, AppState.READY, True),
        (RUNNING, LATER, 3600, AppState.WANTED, False),
        (RUNNING, LATER, 3600, AppState.STARTING, False),
        (RUNNING, LATER, 15 * 60 + 20, AppState.READY, False),
        (RUNNING, Countdown(NOON, unused=True), 3600, AppState.READY, False),
        (RUNNING.model_copy(update={"ready": None}), LATER, 3600, AppState.READY, False),
        (RUNNING.model_copy(update={"extending": NOON}), LATER, 3600, AppState.READY, False),
    ],
)
def test_what_is_awaited_is_reported_as_usual(
    session: Session, end: Countdown, left: int, app: AppState, watched: bool
) -> None:
    assert seconds_to_next(session, end, left, [app], watched) is None


def test_one_lost_report_has_no_consequence() -> None:
    """It was sent on the kept connection, then on a new one; the next follows as usual."""
    longest = timedelta(seconds=QUIET_SECONDS + 2 * ANSWER_TIMEOUT + USUAL)
    assert longest < min(NODE_SILENT_AFTER, UNWATCHED, HEARTBEAT_LIMIT)
