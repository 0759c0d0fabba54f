"""When a session counts as used, and when its idle time is over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from portal.core.apps.access import gateway_name
from portal.core.session.idle import (
    NOTICE_AFTER,
    UNWATCHED,
    Traffic,
    TrafficSample,
    idle_deadline,
    idle_notice,
    is_computing,
    is_unused,
    should_record_use,
    used_sessions,
    warning_span,
)
from portal.core.session.session import Session, State
from portal.core.site_rules import SiteRules

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
ONE, TWO = "1" * 32, "2" * 32
LAB, SHELL = gateway_name("jupyterlab", ONE), gateway_name("terminal", ONE)
TWENTY = timedelta(seconds=20)
HOUR = SiteRules(idle_minutes=60)


def session(**changes: object) -> Session:
    """A running session, last used at noon, that reports."""
    values: dict[str, object] = {
        "id": ONE,
        "name": "one",
        "owner": "alice",
        "environment": "python",
        "version": "3.13",
        "cpus": 1,
        "memory_mb": 600,
        "state": State.RUNNING,
        "created": NOON,
        "submitted": NOON,
        "token_hash": "x",
        "ready": NOON,
        "last_used": NOON,
    }
    return Session.model_validate({**values, **changes})


def used(
    before: dict[str, tuple[int, int]],
    now: dict[str, tuple[int, int]],
    after: timedelta = TWENTY,
    **noise: int,
) -> set[str]:
    """The sessions that are in use according to these measurements."""
    first, second = (
        {name: Traffic(*sent) for name, sent in counted.items()} for counted in (before, now)
    )
    return used_sessions(
        {ONE, TWO}, TrafficSample(NOON, first), TrafficSample(NOON + after, second), noise
    )


def test_an_open_window_is_not_use() -> None:
    assert used({LAB: (7, 900)}, {LAB: (7, 900)}) == set()
    assert used({}, {}) == set()
    assert used({LAB: (7, 900)}, {}) == set()


def test_requests_and_typing_are_use() -> None:
    assert used({LAB: (7, 900)}, {LAB: (8, 900)}) == {ONE}
    assert used({SHELL: (7, 900)}, {SHELL: (7, 901)}) == {ONE}
    assert used({}, {gateway_name("code-server", TWO): (1, 0)}) == {TWO}


def test_background_traffic_is_counted_per_minute() -> None:
    for sent, after, found in (
        (100, TWENTY, set()),  # all of a minute's background traffic may fall into one part of it
        (101, TWENTY, {ONE}),
        (150, timedelta(seconds=90), set()),
        (151, timedelta(seconds=90), {ONE}),
    ):
        assert used({LAB: (0, 50)}, {LAB: (0, 50 + sent)}, after, jupyterlab=100) == found
    assert used({SHELL: (0, 0)}, {SHELL: (0, 1)}, jupyterlab=100) == {ONE}


def test_counters_of_a_restarted_haproxy_begin_at_zero() -> None:
    assert used({LAB: (90, 9000)}, {LAB: (0, 0)}) == set()
    assert used({LAB: (90, 9000)}, {LAB: (1, 20)}) == {ONE}
    assert used({LAB: (90, 9000)}, {LAB: (90, 300)}) == {ONE}  # as many requests, but new ones


def test_unmeasured_time_counts_as_use() -> None:
    now = TrafficSample(NOON, {LAB: Traffic(5, 5)})
    assert used_sessions({ONE, TWO}, None, now, {}) == {ONE, TWO}
    still = {LAB: (5, 5)}
    assert used(still, still, UNWATCHED) == set()
    assert used(still, still, UNWATCHED + TWENTY) == {ONE, TWO}


def test_only_running_sessions_count() -> None:
    over = gateway_name("jupyterlab", "3" * 32)
    assert used({}, {over: (5, 5), "nonsense": (5, 5)}) == set()


COUNTED = st.tuples(st.integers(0, 50), st.integers(0, 5000))


@given(COUNTED, COUNTED, st.booleans())
def test_only_new_traffic_is_use(
    before: tuple[int, int], sent: tuple[int, int], restarted: bool
) -> None:
    now = sent if restarted else (before[0] + sent[0], before[1] + sent[1])
    # A restart shows as falling counters, which do not recover within seconds.
    assume(not restarted or now[0] < before[0] or now[1] < before[1])
    expected = {ONE} if sent[0] or sent[1] > 100 else set()
    assert used({LAB: before}, {LAB: now}, jupyterlab=100) == expected


def test_computations_count() -> None:
    quiet, busy = SiteRules(), SiteRules(idle_cpu_percent=50)
    at = NOON + TWENTY
    assert not is_computing(session(), 9.9, (), quiet, at)
    assert is_computing(session(), 10.0, (), quiet, at)
    assert not is_computing(session(), 49.0, (), busy, at)
    assert is_computing(session(), None, ("jupyterlab",), quiet, at)
    assert not is_computing(session(), None, (), quiet, at)


def test_a_silent_node_counts_as_computing() -> None:
    silent = session(usage_at=NOON + TWENTY)
    at = NOON + TWENTY + UNWATCHED
    assert not is_computing(silent, 0.0, (), HOUR, at)
    assert is_computing(silent, 0.0, (), HOUR, at + timedelta(seconds=1))


def test_use_is_stored_now_and_then() -> None:
    short = SiteRules(idle_minutes=1)
    for rules, seconds, worth in (
        (SiteRules(), 59, False),
        (SiteRules(), 60, True),
        (HOUR, 59, False),
        (short, 5, False),
        (short, 6, True),
    ):
        assert should_record_use(session(), rules, NOON + timedelta(seconds=seconds)) is worth
    assert should_record_use(session(last_used=None), HOUR, NOON)


def test_the_end_of_an_unused_session() -> None:
    ends = NOON + timedelta(hours=1)
    awake = session(usage_at=ends)
    assert idle_deadline(awake, HOUR) == ends
    assert not is_unused(awake, HOUR, ends - timedelta(seconds=1))
    assert is_unused(awake, HOUR, ends)
    assert not is_unused(awake, SiteRules(), ends + timedelta(days=99))


@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_only_running_sessions_can_be_unused(state: State) -> None:
    late = NOON + timedelta(days=9)
    assert idle_deadline(session(state=state, usage_at=late), HOUR) is None
    assert not is_unused(session(state=state, usage_at=late), HOUR, late)


def test_nothing_ends_while_the_node_is_silent_or_without_measurements() -> None:
    late = NOON + timedelta(days=9)
    assert not is_unused(session(usage_at=late - UNWATCHED - TWENTY), HOUR, late)
    assert is_unused(session(usage_at=late - UNWATCHED), HOUR, late)
    assert not is_unused(session(usage_at=late, last_used=None), HOUR, late)


def test_a_new_rule_gives_every_session_the_warning_time() -> None:
    late = NOON + timedelta(hours=9)
    new = HOUR.model_copy(update={"idle_set": late, "idle_warning": 10})
    assert idle_deadline(session(), new) == late + timedelta(minutes=10)
    fresh = session(last_used=late)
    assert idle_deadline(fresh, new) == late + timedelta(hours=1)


def test_the_default_warning_suits_short_rules() -> None:
    spans = {240: 15, 60: 15, 20: 5, 1: 0.25}
    for minutes, span in spans.items():
        assert warning_span(SiteRules(idle_minutes=minutes)) == timedelta(minutes=span)
    assert warning_span(SiteRules(idle_minutes=240, idle_warning=60)) == timedelta(hours=1)


def test_a_quiet_notice_precedes_the_warning() -> None:
    def notice(minutes: float, **changes: object) -> bool | None:
        now = NOON + timedelta(minutes=minutes)
        found = idle_notice(session(usage_at=now, **changes), HOUR, now)
        assert found is None or found.ends == NOON + timedelta(hours=1)
        return None if found is None else found.warned

    quiet = NOTICE_AFTER / timedelta(minutes=1)
    assert notice(quiet - 1) is None
    assert notice(quiet) is False
    assert notice(44) is False
    assert notice(45) is True
    assert notice(59) is True
    # Its time limit comes first: the owner is warned about that.
    assert notice(45, deadline=NOON + timedelta(minutes=59)) is None
    assert notice(45, deadline=NOON + timedelta(minutes=61)) is True


def test_there_is_no_notice_for_a_silent_node() -> None:
    assert idle_notice(session(), HOUR, NOON + timedelta(minutes=50)) is None
