"""Charts of a session's use over time: the geometry of the SVG, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from portal.core.job.samples import Point
from portal.core.session.session import Session
from portal.core.units import rounded_size

WIDTH, HEIGHT = 600, 100
HEADROOM = 1.1
"""The top of a chart, relative to what the session has."""
ROWS = 24
"""Rows of the table."""
Value = Callable[[Point], float | None]


@dataclass(frozen=True)
class Chart:
    """One curve, with a line for what the session has."""

    title: str
    total: str
    """What the session has: "2 cores"."""
    now: str
    peak: str
    limit_y: float
    """Of the line of what the session has, from the top."""
    line: str
    area: str
    """Paths of the curve and of the area below it."""
    values: tuple[str, ...]
    """As text, one for each point."""


def charts_of(session: Session, points: Sequence[Point]) -> list[Chart]:
    """The charts of a session: CPU and memory, and those of its GPU."""
    if len(points) < 2:
        return []
    charts = [
        _chart("CPU", points, _cores, float(session.cpus), _in_cores),
        _chart("Memory", points, _memory, float(session.memory_mb), rounded_size),
    ]
    if session.gpu_sm_percent:
        share = session.gpu_sm_percent
        charts.append(_chart("GPU", points, lambda p: _gpu(p, share), 100.0, _in_percent))
    if session.gpu_memory_mb:
        size = float(session.gpu_memory_mb)
        charts.append(_chart("GPU memory", points, _gpu_memory, size, rounded_size))
    return [chart for chart in charts if chart is not None]


def _chart(
    title: str,
    points: Sequence[Point],
    value: Value,
    total: float,
    text: Callable[[float], str],
) -> Chart:
    values = [value(point) for point in points]
    known = [number for number in values if number is not None]
    top = max([total, *known]) * HEADROOM
    places = list(zip(_places(points), [_y(number, top) for number in values], strict=True))
    return Chart(
        title=title,
        total=text(total),
        now=text(known[-1]) if known else "",
        peak=text(max(known)) if known else "",
        limit_y=round(HEIGHT * (1 - total / top), 1),
        line=" ".join(_line(run) for run in _runs(places)),
        area=" ".join(_area(run) for run in _runs(places)),
        values=tuple("" if number is None else text(number) for number in values),
    )


def _places(points: Sequence[Point]) -> list[float]:
    begun, ended = points[0].sample.at, points[-1].sample.until
    span = max((ended - begun).total_seconds(), 1.0)
    return [WIDTH * (point.sample.until - begun).total_seconds() / span for point in points]


def _y(number: float | None, top: float) -> float | None:
    return None if number is None else HEIGHT * (1 - number / top)


Place = tuple[float, float]


def _runs(places: Iterable[tuple[float, float | None]]) -> list[list[Place]]:
    """The connected parts of a curve."""
    runs: list[list[Place]] = [[]]
    for x, y in places:
        if y is None:
            runs.append([])
        else:
            runs[-1].append((x, y))
    return [run for run in runs if run]


def _line(run: Sequence[Place]) -> str:
    # A single point would be invisible.
    run = run if len(run) > 1 else [(run[0][0] - 1, run[0][1]), *run]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run)


def _area(run: Sequence[Place]) -> str:
    return f"{_line(run)}L{run[-1][0]:.1f} {HEIGHT}L{run[0][0]:.1f} {HEIGHT}Z"


def _cores(point: Point) -> float | None:
    return None if point.cpu_percent is None else point.cpu_percent / 100


def _memory(point: Point) -> float:
    return point.sample.memory / 2**20


def _gpu(point: Point, share: int) -> float | None:
    percent = point.sample.gpu_percent
    return None if percent is None else min(percent / share * 100, 100.0)


def _gpu_memory(point: Point) -> float | None:
    used = point.sample.gpu_memory
    return None if used is None else used / 2**20


def _in_cores(cores: float) -> str:
    number = f"{cores:.2f}".rstrip("0").rstrip(".")
    return f"{number} {'core' if number == '1' else 'cores'}"


def _in_percent(percent: float) -> str:
    return f"{percent:.0f} %"


@dataclass(frozen=True)
class TableRow:
    """One time in the table of the charts."""

    at: datetime
    values: tuple[str, ...]


def table_of(charts: Sequence[Chart], points: Sequence[Point]) -> list[TableRow]:
    """The charts as a table of at most ROWS rows, evenly spread, with the last point."""
    step = max(-(-len(points) // ROWS), 1)
    chosen = range((len(points) - 1) % step, len(points), step)
    return [
        TableRow(points[n].sample.until, tuple(chart.values[n] for chart in charts)) for n in chosen
    ]
