"""Who used what: sums over time, by person, account, environment and app, and the CSV file."""

from __future__ import annotations

import csv
from datetime import UTC, date, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from portal.core.admin.csv_text import csv_line
from portal.core.admin.usage_report import MOST_SPANS, UsageQuery, UsageSum, spans_of, usage_csv
from portal.core.auth.person import Person
from portal.core.launch.request import parse_launch
from portal.errors import InvalidRequest, NotFound
from portal.services.admin.usage_report import OWN_IMAGE
from tests.support.fakes import World, make_world
from tests.unit.web.conftest import make_settings

ADMIN, ALICE, BOB = (
    Person("admin", True, "a"),
    Person("alice", False, "b"),
    Person("bob", False, "c"),
)
REQUEST = parse_launch({"environment": "python", "resources": {"cpus": 1, "memory": "600m"}})
DAY = timedelta(days=1)
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)  # the fake clock shows noon of this day


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = make_world(make_settings(tmp_path))
    made.worker.read_partitions()
    made.worker.read_limits()
    return made


def ran(world: World, who: Person, start: datetime, hours: float | None, **columns: Any) -> str:
    """A session that ran for so many hours; None: it still runs."""
    session = world.launch(who, REQUEST)
    ended = None if hours is None else start + timedelta(hours=hours)
    state = "RUNNING" if hours is None else "FINISHED"
    world.force(session.id, started=start, ended=ended, state=state, **columns)
    return session.id


def groups(world: World, **query: Any) -> dict[str, UsageSum]:
    report = world.services.usage.report(ADMIN, UsageQuery(**query))
    return dict(report.groups)


def days(world: World, **query: Any) -> dict[str, float]:
    report = world.services.usage.report(ADMIN, UsageQuery(**query))
    return {f"{span.begin:%d}": used.core_hours for span, used in report.spans if used.core_hours}


def test_a_session_counts_in_each_day_as_long_as_it_ran(world: World) -> None:
    ran(world, ALICE, MIDNIGHT - DAY - timedelta(hours=6), 36, cpus=2)
    assert days(world) == {"18": 12.0, "19": 48.0, "20": 12.0}
    ran(world, BOB, MIDNIGHT + timedelta(hours=10), None)
    assert days(world) == {"18": 12.0, "19": 48.0, "20": 14.0}


def test_spans_and_groups_have_the_same_sum(world: World) -> None:
    for number in range(6):
        start = MIDNIGHT - (number * 7 + 5) * DAY
        ran(world, (ALICE, BOB)[number % 2], start, None if number == 5 else 100.5, fgpu=0.5)
    for unit in ("day", "week", "month"):
        report = world.services.usage.report(ADMIN, UsageQuery(unit=unit))
        total = report.total
        assert sum(used.core_hours for _, used in report.spans) == pytest.approx(total.core_hours)
        assert sum(used.gpu_hours for _, used in report.spans) == pytest.approx(total.gpu_hours)
        assert sum(used.sessions for _, used in report.spans) == total.sessions
        assert total.gpu_hours == pytest.approx(total.core_hours / 2)


def test_groups(world: World) -> None:
    hours = MIDNIGHT + timedelta(hours=1)
    ran(world, ALICE, hours, 2, account="physics")
    ran(world, ALICE, hours, 1)
    ran(world, BOB, hours, 4, environment="", image="mine.sif", account="physics")
    people = groups(world)
    assert list(people) == ["bob", "alice"]
    assert people["alice"] == UsageSum(2, 1, 3.0, 0.0)
    limits = world.status.reported().limits
    assert limits is not None
    accounts = groups(world, by="account")
    assert accounts["physics"] == UsageSum(2, 2, 6.0, 0.0)
    assert accounts[limits.default_accounts["alice"]].core_hours == 1.0
    assert groups(world, by="environment")[OWN_IMAGE].core_hours == 4.0
    assert days(world, by="environment", of=OWN_IMAGE) == {"20": 4.0}
    assert days(world, by="account", of=limits.default_accounts["alice"]) == {"20": 1.0}
    assert days(world, by="person", of="alice") == {"20": 3.0}


def test_apps_count_where_they_were_opened(world: World) -> None:
    session = ran(world, ALICE, MIDNIGHT, 2)
    record = world.services.administration.record
    for _ in range(2):
        record("alice", "app.open", session, "JupyterLab of of of x")
    record("alice", "app.open", session, "Terminal of x")
    found = world.services.usage.report(ADMIN, UsageQuery(by="app"))
    assert {name: used.core_hours for name, used in found.groups} == {
        "JupyterLab of of": 2.0,
        "Terminal": 2.0,
    }
    assert found.total.core_hours == 2.0


def test_who_has_sessions_now(world: World) -> None:
    ran(world, ALICE, MIDNIGHT, None, cpus=4, memory_mb=2048, last_used=MIDNIGHT)
    world.launch(ALICE, REQUEST)
    ran(world, BOB, MIDNIGHT, 1)
    (one,) = world.services.usage.now(ADMIN)
    assert (one.user, one.running, one.waiting, one.cpus) == ("alice", 1, 1, 4)
    assert (one.memory_mb, one.last_used) == (2048, MIDNIGHT)


def test_it_is_for_administrators(world: World) -> None:
    for asked in (
        lambda: world.services.usage.now(ALICE),
        lambda: world.services.usage.report(ALICE, UsageQuery()),
        lambda: world.services.usage.export(ALICE, UsageQuery()),
    ):
        with pytest.raises(NotFound):
            asked()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"first": date(2026, 11, 2), "last": date(2026, 11, 1)}, "first"),
        ({"first": date(2026, 1, 1)}, "first"),
        ({"last": date.max}, "last"),
        ({"last": date.min}, "last"),
        ({"by": "app", "of": "JupyterLab"}, "of"),
    ],
)
def test_times_that_cannot_be_are_named(query: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        spans_of(UsageQuery(**query), MIDNIGHT)
    assert [error.field for error in caught.value.errors] == [field]


def test_weeks_begin_on_mondays_and_months_on_their_first() -> None:
    weeks = spans_of(UsageQuery(unit="week", first=date(2026, 11, 18)), MIDNIGHT)
    assert [f"{span.begin:%a %d}" for span in weeks] == ["Mon 16"]
    months = spans_of(UsageQuery(unit="month"), MIDNIGHT)
    assert (f"{months[0].begin:%Y-%m-%d}", len(months)) == ("2025-12-01", 12)
    most = spans_of(UsageQuery(first=(MIDNIGHT - (MOST_SPANS - 1) * DAY).date()), MIDNIGHT)
    assert len(most) == MOST_SPANS


def test_a_spreadsheet_calculates_nothing(world: World) -> None:
    ran(world, ALICE, MIDNIGHT, 2, account="=1+1")
    report = world.services.usage.export(ADMIN, UsageQuery(by="account"))
    rows = list(csv.reader(StringIO("".join(usage_csv(report)))))
    assert rows[0] == [
        "kind",
        "name",
        "from",
        "to",
        "sessions",
        "people",
        "core_hours",
        "gpu_hours",
    ]
    assert rows[-1] == ["account", "'=1+1", "2026-11-07", "2026-11-20", "1", "1", "2.0", "0.0"]
    assert csv_line(["@x", "+1", "-1", "plain"]) == "'@x,'+1,'-1,plain\r\n"
