"""Maintenance: who waits until when, and Slurm's own reservations."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from portal.core.auth.person import Person
from portal.core.cluster.limits import Reservation
from portal.core.notices.maintenance import (
    LONGEST,
    OPEN_END,
    Maintenance,
    UnderMaintenance,
    begin_now,
    launch_begin,
    until_problems,
)
from portal.core.notices.window import Window, waits_for, window
from portal.core.session.pending_reasons import maintenance_reason

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ALICE, ADMIN = Person("alice", False, "a"), Person("admin", True, "b")


def until(end: datetime | None) -> Maintenance:
    return Maintenance(until=end, message="New disks", since=NOW, by="admin")


def test_a_launch_waits_until_the_end() -> None:
    assert launch_begin(until(NOW + HOUR), ALICE, NOW) == NOW + HOUR
    assert launch_begin(until(NOW + HOUR), ALICE, NOW + HOUR) is None
    assert launch_begin(None, ALICE, NOW) is None


def test_without_an_end_it_is_refused_with_the_message() -> None:
    with pytest.raises(UnderMaintenance, match="New disks") as caught:
        launch_begin(until(None), ALICE, NOW)
    assert (caught.value.status, caught.value.retry_seconds) == (503, 600)


def test_administrators_launch_as_always() -> None:
    assert launch_begin(until(None), ADMIN, NOW) is None
    assert launch_begin(until(NOW + HOUR), ADMIN, NOW) is None


def test_waiting_sessions_follow_the_end() -> None:
    begin = NOW + HOUR
    assert begin_now(until(NOW + 3 * HOUR), begin, NOW) == NOW + 3 * HOUR
    assert begin_now(None, begin, NOW) == NOW
    assert begin_now(until(NOW), begin, NOW) == NOW
    assert begin_now(None, NOW - HOUR, NOW) == NOW - HOUR


def test_without_an_end_they_are_put_off_before_they_start() -> None:
    assert begin_now(until(None), NOW + HOUR, NOW) == NOW + HOUR
    assert begin_now(until(None), NOW + HOUR / 4, NOW) == NOW + OPEN_END


@pytest.mark.parametrize("end", [NOW, NOW - HOUR, NOW + LONGEST + HOUR])
def test_an_end_that_cannot_be_is_named(end: datetime) -> None:
    assert [problem.field for problem in until_problems(end, NOW)] == ["until"]


def test_the_reason_says_the_day_if_it_is_another() -> None:
    assert maintenance_reason(NOW, NOW).text == "Maintenance until 12:00 UTC; it starts then."
    later = maintenance_reason(NOW + 24 * HOUR, NOW)
    assert later.text == "Maintenance until 2026-11-25 12:00 UTC; it starts then."
    assert later.begin == NOW + 24 * HOUR


# Slurm's reservations


def maint(start: datetime, end: datetime | None, *nodes: str, flags: str = "MAINT") -> Reservation:
    return Reservation("m", start, end, nodes=nodes, flags=(flags,))


def test_a_launch_that_reaches_into_maintenance_waits() -> None:
    found = window([maint(NOW + 3 * HOUR, NOW + 9 * HOUR, "n1", "n2")], ["n1", "n2"], NOW)
    assert found == Window(NOW + 3 * HOUR, NOW + 9 * HOUR, 180)
    assert waits_for(found, 480) is found
    assert waits_for(found, None) is found
    assert waits_for(found, 180) is None


def test_a_node_that_is_not_reserved_can_run_it() -> None:
    assert window([maint(NOW + HOUR, None, "n1")], ["n1", "n2"], NOW) is None
    assert window([], [], NOW) is None


def test_the_node_that_is_free_for_the_longest_counts() -> None:
    planned = [maint(NOW + HOUR, NOW + 2 * HOUR, "n1"), maint(NOW + 5 * HOUR, None, "n2")]
    assert window(planned, ["n1", "n2"], NOW) == Window(NOW + 5 * HOUR, NOW + 2 * HOUR, 300)


def test_maintenance_that_goes_on_leaves_no_time() -> None:
    found = window([maint(NOW - HOUR, NOW + HOUR, "n1")], ["n1"], NOW)
    assert found is not None
    assert found.minutes == 0


def test_other_reservations_and_those_that_are_over_do_not_count() -> None:
    others = [maint(NOW + HOUR, None, "n1", flags="FLEX"), maint(NOW - 2 * HOUR, NOW - HOUR, "n1")]
    assert window(others, ["n1"], NOW) is None
