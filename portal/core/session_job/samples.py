"""A session's use over time, in a bounded number of samples for any run time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict

SECONDS = 60
"""Initial span of a sample; it doubles whenever there are more than MOST samples."""
MOST = 300
"""Maximum number of samples stored for one session."""


class Sample(BaseModel):
    """The use of a session during one span of time."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    at: datetime
    """Start of the span, a multiple of its length since 1970."""
    seconds: int
    """Length of the span."""
    until: datetime
    """Time of its last report."""
    reports: int = 1
    cpu_seconds: float
    """CPU time since the start of the job, as of the last report."""
    memory: int
    """Bytes; the largest reported value."""
    gpu_percent: float | None = None
    """Percent of the whole GPU; the mean of the reports."""
    gpu_memory: int | None = None
    """Bytes; the largest reported value."""


class Reading(BaseModel):
    """The measurements of one heartbeat; fields as in Sample."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    cpu_seconds: float
    memory: int
    gpu_percent: float | None = None
    gpu_memory: int | None = None


def add_reading(last: Sample | None, reading: Reading) -> Sample:
    """The last sample with the reading merged into it, or a new sample after it."""
    seconds = last.seconds if last else SECONDS
    new = Sample(
        at=_start(reading.at, seconds),
        seconds=seconds,
        until=reading.at,
        cpu_seconds=reading.cpu_seconds,
        memory=reading.memory,
        gpu_percent=reading.gpu_percent,
        gpu_memory=reading.gpu_memory,
    )
    # A clock that was set back must not write into the past.
    return new if last is None or new.at > last.at else _merge(last, new)


def thin(samples: Iterable[Sample]) -> list[Sample]:
    """The samples merged in pairs, each with twice the span; CPU time stays exact."""
    thinned: list[Sample] = []
    for sample in samples:
        seconds = 2 * sample.seconds
        wide = sample.model_copy(update={"at": _start(sample.at, seconds), "seconds": seconds})
        if thinned and thinned[-1].at == wide.at:
            thinned[-1] = _merge(thinned[-1], wide)
        else:
            thinned.append(wide)
    return thinned


def at_most(samples: Sequence[Sample], count: int) -> Sequence[Sample]:
    """The samples, thinned until there are no more than `count`."""
    while len(samples) > count:
        samples = thin(samples)
    return samples


def _merge(first: Sample, second: Sample) -> Sample:
    return first.model_copy(
        update={
            "until": max(first.until, second.until),
            "reports": first.reports + second.reports,
            "cpu_seconds": second.cpu_seconds,
            "memory": max(first.memory, second.memory),
            "gpu_percent": _mean(first, second),
            "gpu_memory": max(
                (s.gpu_memory for s in (first, second) if s.gpu_memory is not None), default=None
            ),
        }
    )


def _mean(first: Sample, second: Sample) -> float | None:
    measured = [(s.gpu_percent, s.reports) for s in (first, second) if s.gpu_percent is not None]
    if not measured:
        return None
    return sum(percent * reports for percent, reports in measured) / sum(n for _, n in measured)


def _start(at: datetime, seconds: int) -> datetime:
    return datetime.fromtimestamp(int(at.timestamp()) // seconds * seconds, UTC)


@dataclass(frozen=True)
class Point:
    """One point of a curve: a sample with the CPU use since the previous sample."""

    sample: Sample
    cpu_percent: float | None
    """Percent of one core; None if it is not known."""


def to_points(samples: Sequence[Sample], started: datetime | None, cpus: int) -> list[Point]:
    """The samples with their CPU use, which the session's cores bound."""
    points = []
    before, used = started, 0.0
    for sample in samples:
        span = (sample.until - before).total_seconds() if before else 0.0
        spent = sample.cpu_seconds - used
        # A requeued job counts from zero again; its first span is not known.
        percent = 100 * spent / span if span >= 1 and spent >= 0 else None
        points.append(Point(sample, None if percent is None else min(percent, 100.0 * cpus)))
        before, used = sample.until, sample.cpu_seconds
    return points
