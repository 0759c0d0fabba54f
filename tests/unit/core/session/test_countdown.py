"""When a session ends, and by how much people may extend it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from portal.core.session.countdown import countdown, extension_choices, retention_text
from portal.core.session.session import State
from portal.core.site_rules import SiteRules
from tests.support.stored_sessions import NOON, ended_session

NO_RULES = SiteRules()


def test_the_time_limit_or_idleness_once_that_is_near() -> None:
    running = ended_session(state=State.RUNNING, cause=None, last_used=NOON, usage_at=NOON)
    assert countdown(running, NO_RULES, NOON).ends == running.deadline
    rules = SiteRules(idle_minutes=40)
    assert not countdown(running, rules, NOON + timedelta(minutes=1)).unused
    now = NOON + timedelta(minutes=35)
    found = countdown(running.model_copy(update={"usage_at": now}), rules, now)
    assert (found.ends, found.unused) == (NOON + timedelta(minutes=40), True)


def test_without_a_limit_there_is_no_end() -> None:
    running = ended_session(state=State.RUNNING, cause=None, deadline=None)
    assert countdown(running, NO_RULES, NOON).ends is None


@pytest.mark.parametrize(
    ("room", "minutes"),
    [(None, [60, 240]), (0, []), (20, [20]), (60, [60]), (300, [60, 240, 300])],
)
def test_choices_stay_within_the_limits(room: int | None, minutes: list[int]) -> None:
    assert [choice for choice, _ in extension_choices(room)] == minutes


def test_the_longest_choice_says_how_long_it_is() -> None:
    assert extension_choices(90)[-1] == (90, "as long as possible: 1 h 30 min more")


def test_what_is_kept_is_one_text() -> None:
    assert retention_text(ended_session()).endswith("is deleted.")
