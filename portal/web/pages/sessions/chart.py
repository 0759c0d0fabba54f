"""Charts of a session's use over time: the geometry of the SVG, and a table of the values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from portal.core.session.session import Session
from portal.core.session_job.samples import Point
from portal.core.units import rounded_size

WIDTH, HEIGHT = 600, 100
HEADROOM = 1.1
"""The top of a chart, relative to the session's resource."""
ROWS = 24
"""Rows of the table."""
Value = Callable[[Point], float | None]


@dataclass(frozen=True)
class Chart:
    """A curve, with a line for the session's resource."""

    title: str
    total: str
    """The session's resource, such as "2 cores"."""
    now: str
    peak: str
    limit_y: float
    """Position of the line for the session's resource, from the top."""
    line: str
    area: str
    """Paths of the curve and of the area below it."""
    values: tuple[str, ...]
    """The value at each point as text."""


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
    numbers = [number for number in values if number is not None]
    top = max([total, *numbers]) * HEADROOM
    positions = list(zip(_x_positions(points), [_y(number, top) for number in values], strict=True))
    return Chart(
        title=title,
        total=text(total),
        now=text(numbers[-1]) if numbers else "",
        peak=text(max(numbers)) if numbers else "",
        limit_y=round(HEIGHT * (1 - total / top), 1),
        line=" ".join(_line(run) for run in _runs(positions)),
        area=" ".join(_area(run) for run in _runs(positions)),
        values=tuple("" if number is None else text(number) for number in values),
    )


def _x_positions(points: Sequence[Point]) -> list[float]:
    start, end = points[0].sample.at, points[-1].sample.until
    span = max((end - start).total_seconds(), 1.0)
    return [WIDTH * (point.sample.until - start).total_seconds() / span for point in points]


def _y(number: float | None, top: float) -> float | None:
    return None if number is None else HEIGHT * (1 - number / top)


Position = tuple[float, float]


def _runs(positions: Iterable[tuple[float, float | None]]) -> list[list[Position]]:
    """The connected parts of a curve."""
    runs: list[list[Position]] = [[]]
    for x, y in positions:
        if y is None:
            runs.append([])
        else:
            runs[-1].append((x, y))
    return [run for run in runs if run]


def _line(run: Sequence[Position]) -> str:
    # A single point would be invisible.
    run = run if len(run) > 1 else [(run[0][0] - 1, run[0][1]), *run]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run)


def _area(run: Sequence[Position]) -> str:
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
