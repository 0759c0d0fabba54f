"""Use of resources over time: spans, sums, and their CSV file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from portal.core.admin.csv_text import csv_line
from portal.errors import FieldError, InvalidRequest

Unit = Literal["day", "week", "month"]
By = Literal["person", "account", "environment", "app"]
DEFAULT_SPANS = {"day": 14, "week": 12, "month": 12}
"""Number of spans that are shown unless the first day is set."""
MOST_SPANS = 100
HOUR = 3600


class UsageQuery(BaseModel):
    """Parameters of a usage report; days are UTC."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    unit: Unit = "day"
    """Length of the spans in which use is summed."""
    by: By = "person"
    """The key by which the sums over all spans are grouped."""
    first: date | None = None
    """The first day, such as 2026-11-01; default: the last 14 days, 12 weeks or 12 months."""
    last: date | None = None
    """The last day; default: today."""
    of: Annotated[str, Field(max_length=200)] = ""
    """Restrict the spans to this person, account or environment, according to `by`; "": all."""


@dataclass(frozen=True)
class Span:
    """A day, a week from Monday on, or a month; the end is exclusive."""

    begin: datetime
    end: datetime


@dataclass(frozen=True)
class Flow:
    """Sessions that started, or ended, in a span; seconds are from the span's begin."""

    sessions: int = 0
    people: int = 0
    cpus: int = 0
    fgpu: float = 0.0
    cpu_seconds: float = 0.0
    """The sum of cores times seconds."""
    fgpu_seconds: float = 0.0


@dataclass(frozen=True)
class UsageSum:
    """A sum of usage: of all users in one span, or of one person, account, … in all spans."""

    sessions: int
    """Sessions that started in this time."""
    people: int
    """Number of users who started them."""
    core_hours: float
    gpu_hours: float
    """In fGPU, the site's unit of GPUs."""


@dataclass(frozen=True)
class UsageFilter:
    """Restricts sums to one person, account or environment."""

    by: By
    of: str
    """The key in the database; "" for Slurm's default account, and for own images."""
    owners: frozenset[str] = frozenset()
    """Users whose sessions without an account are charged to this one."""


@dataclass(frozen=True)
class Share:
    """The sums of one owner for one key, as the store returns them."""

    key: str
    owner: str
    sessions: int
    core_seconds: float
    fgpu_seconds: float


@dataclass(frozen=True)
class Report:
    """The answer to a query."""

    query: UsageQuery
    spans: tuple[tuple[Span, UsageSum], ...]
    groups: tuple[tuple[str, UsageSum], ...] = field(default=())
    """By person, account, environment or app: the largest use first."""
    total: UsageSum = field(default=UsageSum(0, 0, 0.0, 0.0))


def spans_of(query: UsageQuery, now: datetime) -> list[Span]:
    """The spans of a query, oldest first; raises InvalidRequest."""
    if query.of and query.by == "app":
        text = "leave it out: it is for persons, accounts and environments"
        raise InvalidRequest([FieldError("of", text)])
    last = query.last or now.astimezone(UTC).date()
    first = query.first or _earliest(last, query.unit)
    if first > last:
        raise InvalidRequest([FieldError("first", "choose a day that is not after the last one")])
    spans: list[Span] = []
    begin = _begin_of(first, query.unit)
    while begin <= last:
        if len(spans) == MOST_SPANS:
            text = f"choose a shorter time: {MOST_SPANS} {query.unit}s at most"
            raise InvalidRequest([FieldError("first", text)])
        try:
            end = _next(begin, query.unit)
        except (OverflowError, ValueError):
            raise InvalidRequest([FieldError("last", "choose an earlier day")]) from None
        spans.append(Span(_midnight(begin), _midnight(end)))
        begin = end
    return spans


def _earliest(last: date, unit: Unit) -> date:
    begin = _begin_of(last, unit)
    try:
        for _ in range(DEFAULT_SPANS[unit] - 1):
            begin = _begin_of(begin - timedelta(days=1), unit)
    except OverflowError:
        raise InvalidRequest([FieldError("last", "choose a later day")]) from None
    return begin


def _begin_of(day: date, unit: Unit) -> date:
    if unit == "week":
        try:
            return day - timedelta(days=day.weekday())
        except OverflowError:
            raise InvalidRequest([FieldError("first", "choose a later day")]) from None
    return day.replace(day=1) if unit == "month" else day


def _next(begin: date, unit: Unit) -> date:
    if unit == "month":
        return (begin + timedelta(days=32)).replace(day=1)
    return begin + timedelta(days=7 if unit == "week" else 1)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def used_in(
    spans: Sequence[Span],
    running: Flow,
    starts: Sequence[Flow],
    ends: Sequence[Flow],
    now: datetime,
) -> list[UsageSum]:
    """Usage in each span, from the sessions running at its first begin, starts and ends.

    A session that runs from `a` to `b` adds its cores from `a` on and takes them away from `b` on,
    so sums of starts and ends are sufficient, however long sessions are.
    """
    sums: list[UsageSum] = []
    cpus, fgpu = running.cpus, running.fgpu
    for span, started, ended in zip(spans, starts, ends, strict=True):
        seconds = max((min(span.end, now) - span.begin).total_seconds(), 0.0)
        added, removed = _until_end(started, seconds), _until_end(ended, seconds)
        core_seconds = cpus * seconds + added[0] - removed[0]
        fgpu_seconds = fgpu * seconds + added[1] - removed[1]
        sums.append(UsageSum(started.sessions, started.people, *_hours(core_seconds, fgpu_seconds)))
        cpus += started.cpus - ended.cpus
        fgpu += started.fgpu - ended.fgpu
    return sums


def _until_end(flow: Flow, seconds: float) -> tuple[float, float]:
    """Cores and fGPU of these sessions, times the seconds from their events to the span's end."""
    return flow.cpus * seconds - flow.cpu_seconds, flow.fgpu * seconds - flow.fgpu_seconds


def _hours(core_seconds: float, fgpu_seconds: float) -> tuple[float, float]:
    return round(max(core_seconds, 0) / HOUR, 3), round(max(fgpu_seconds, 0) / HOUR, 3)


def grouped(
    shares: Iterable[Share], name: Callable[[Share], str]
) -> tuple[tuple[str, UsageSum], ...]:
    """The sums by name, the most core-hours first."""
    groups: defaultdict[str, list[Share]] = defaultdict(list)
    for share in shares:
        groups[name(share)].append(share)
    sums = [(key, total_of(members)) for key, members in groups.items()]
    return tuple(sorted(sums, key=lambda pair: (-pair[1].core_hours, pair[0])))


def total_of(shares: Sequence[Share]) -> UsageSum:
    """Sum the shares."""
    hours = _hours(sum(s.core_seconds for s in shares), sum(s.fgpu_seconds for s in shares))
    people = {share.owner for share in shares if share.sessions}
    return UsageSum(sum(share.sessions for share in shares), len(people), *hours)


_COLUMNS = ("sessions", "people", "core_hours", "gpu_hours")


def usage_csv(report: Report) -> Iterator[str]:
    """A report as a CSV file: first the spans, then the groups, each line with its kind."""
    yield csv_line(("kind", "name", "from", "to", *_COLUMNS))
    first, last = report.spans[0][0].begin, report.spans[-1][0].end
    for span, used in report.spans:
        yield _line(report.query.unit, report.query.of, span.begin, span.end, used)
    for name, used in report.groups:
        yield _line(report.query.by, name, first, last, used)


def _line(kind: str, name: str, begin: datetime, end: datetime, used: UsageSum) -> str:
    days = (f"{begin:%Y-%m-%d}", f"{end - timedelta(days=1):%Y-%m-%d}")
    numbers = (used.sessions, used.people, used.core_hours, used.gpu_hours)
    return csv_line((kind, name, *days, *map(str, numbers)))
