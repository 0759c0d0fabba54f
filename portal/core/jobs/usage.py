"""What a job uses while it runs and has used after its end, from Slurm's figures of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from portal.core.jobs.job import Job, JobTab
from portal.core.units import plural, rounded_size

Number = TypeVar("Number", int, float)

LIVE_EVERY = timedelta(seconds=10)
"""Slurm's nodes are asked about a running job no more often than this, for all who look at it."""
END_EVERY = timedelta(seconds=30)
"""The same for accounting, until it has the end."""
LATELY = timedelta(minutes=5)
"""Two measurements further apart than this say nothing about the use now."""
SHORT = timedelta(minutes=2)
"""The use of a job that ran for less than this is not judged."""
LITTLE = 0.5
"""Below this share of what it has, a job could do with less."""


@dataclass(frozen=True)
class StepUse:
    """One step of a job: the batch script, or a program started by srun."""

    id: str
    """"batch", "extern", "interactive" or its number."""
    tasks: int = 1
    cpu_seconds: float | None = None
    """Processor time of all of its tasks so far."""
    memory: int | None = None
    """Bytes that all of its tasks have now."""
    peak: int | None = None
    """Bytes that its largest task had at most."""
    peak_node: str = ""
    """Where that task runs."""
    gpu_percent: float | None = None
    gpu_memory: int | None = None
    """Bytes."""


@dataclass(frozen=True)
class Ended:
    """What accounting has of a job that is over."""

    steps: tuple[StepUse, ...]
    cores: int
    elapsed: float
    """Seconds for which it had them."""
    memory_mb: int
    """MiB that it had, on all of its nodes; 0 if unknown."""


@dataclass(frozen=True)
class JobUsage:
    """A job's use when Slurm was last asked."""

    at: datetime
    start: datetime | None
    """Of the run that was measured: a job that is requeued runs again under its number."""
    final: bool = False
    """Whether the job was over, so that nothing changes any more."""
    cores: int = 0
    elapsed: float = 0.0
    """Seconds since the start of the run, or that it took."""
    memory_mb: int = 0
    """MiB that it has, on all of its nodes; 0 if unknown."""
    cpu_seconds: float | None = None
    cores_now: float | None = None
    """Cores that were busy on average since the measurement before."""
    memory: int | None = None
    """Bytes in use, by all of its tasks."""
    peak: int | None = None
    """Bytes that the largest of its tasks had at most."""
    peak_node: str = ""
    peak_tasks: int = 1
    """How many tasks the step of the largest one has."""
    gpu_percent: float | None = None
    gpu_memory: int | None = None
    """Bytes."""
    steps: tuple[str, ...] = ()
    """The steps that were measured; while it runs, those that have ended are missing."""
    problem: str = ""
    """Why Slurm told nothing, in words."""

    @property
    def partial(self) -> bool:
        """Whether steps may have ended before, so that the sums are not those of the whole run."""
        return not self.final and any(step.isdecimal() for step in self.steps)

    @property
    def measured(self) -> bool:
        """Whether there is anything to show."""
        return self.cpu_seconds is not None or self.peak is not None or self.memory is not None

    @property
    def cores_mean(self) -> float | None:
        """Cores that were busy on average since the start."""
        if self.cpu_seconds is None or self.elapsed <= 0 or self.partial:
            return None
        return self.cpu_seconds / self.elapsed

    @property
    def cpu_share(self) -> float | None:
        """The share of its cores' time that it used (CPU efficiency), 0 to 1."""
        mean = self.cores_mean
        return None if mean is None or not self.cores else min(mean / self.cores, 1.0)

    @property
    def all_peak(self) -> int | None:
        """Bytes that all of its tasks had together, at most: an upper bound if it has several."""
        return None if self.peak is None else self.peak * self.peak_tasks

    @property
    def memory_share(self) -> float | None:
        """The share of its memory that it used at most, 0 to 1; an estimate with several tasks."""
        peak = self.all_peak
        return None if peak is None or not self.memory_mb else min(peak / 2**20 / self.memory_mb, 1)


def live_usage(
    job: Job, steps: Sequence[StepUse], now: datetime, before: JobUsage | None
) -> JobUsage:
    """The use of a running job; `before` is the measurement before, if there is one."""
    start, report = job.report.start, job.report
    found = JobUsage(
        at=now,
        start=start,
        cores=report.cpus,
        elapsed=(now - start).total_seconds() if start else 0.0,
        memory_mb=report.memory_mb,
        memory=_sum(step.memory for step in steps),
    )
    found = _with_steps(found, steps)
    return replace(found, cores_now=_cores_now(found, before))


def ended_usage(job: Job, ended: Ended, now: datetime) -> JobUsage:
    """The use of a job that is over."""
    found = JobUsage(
        at=now,
        start=job.report.start,
        final=True,
        cores=ended.cores or job.report.cpus,
        elapsed=ended.elapsed,
        memory_mb=ended.memory_mb or job.report.memory_mb,
    )
    return _with_steps(found, ended.steps)


def _with_steps(usage: JobUsage, steps: Sequence[StepUse]) -> JobUsage:
    largest = max(steps, key=lambda step: (step.peak or 0) * step.tasks, default=None)
    if largest is not None and largest.peak is not None:
        usage = replace(
            usage, peak=largest.peak, peak_node=largest.peak_node, peak_tasks=largest.tasks
        )
    return replace(
        usage,
        steps=tuple(step.id for step in steps),
        cpu_seconds=_sum(step.cpu_seconds for step in steps),
        gpu_percent=_sum(step.gpu_percent for step in steps),
        gpu_memory=_sum(step.gpu_memory for step in steps),
    )


def _sum(values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def _cores_now(now: JobUsage, before: JobUsage | None) -> float | None:
    """Cores busy since the measurement before; None if it is too old, or of another run."""
    if before is None or before.start != now.start or now.at - before.at > LATELY:
        return None
    seconds = (now.at - before.at).total_seconds()
    if now.cpu_seconds is None or before.cpu_seconds is None or seconds <= 0:
        return None
    if not set(before.steps) <= set(now.steps):
        return None  # a step that has ended takes its time with it
    used = max(now.cpu_seconds - before.cpu_seconds, 0.0) / seconds
    return min(used, float(now.cores)) if now.cores else used


def is_due(job: Job, known: JobUsage | None) -> timedelta | None:
    """How long ago Slurm must have been asked at least to be asked again; None: not at all."""
    if job.report.start is None or job.gone:
        return None
    if job.tab is JobTab.RUNNING:
        return LIVE_EVERY if job.report.nodes else None
    if job.tab is not JobTab.ENDED or (known is not None and known.final):
        return None
    return END_EVERY


def usage_of(job: Job, known: JobUsage | None) -> JobUsage | None:
    """The stored use, if it is that of the job's present or last run."""
    return known if known is not None and known.start == job.report.start else None


def cores_words(cores: float) -> str:
    """A number of busy cores: "3.8", "0.05", "12"."""
    return f"{cores:.2f}" if cores < 0.1 else f"{cores:.1f}".removesuffix(".0")


def cpu_words(usage: JobUsage) -> str:
    """How it used its cores, in a sentence; "" if that is not known."""
    mean, share = usage.cores_mean, usage.cpu_share
    if mean is None or share is None:
        return ""
    kept = "It kept" if usage.final else "So far it has kept"
    mean = min(mean, usage.cores)
    if usage.cores == 1:
        return f"{kept} its core busy {percent(share)} of the time."
    return f"{kept} {cores_words(mean)} of its {usage.cores} cores busy on average."


def memory_words(usage: JobUsage) -> str:
    """The most memory that it used, in a sentence; "" if that is not known."""
    if usage.peak is None:
        return ""
    of = f" of {rounded_size(usage.memory_mb)}" if usage.memory_mb else ""
    if usage.peak_tasks == 1:
        who = "What runs now" if usage.partial else "It"
        return f"{who} used at most {rounded_size(usage.peak / 2**20)}{of}."
    where = f" (on {usage.peak_node})" if usage.peak_node else ""
    together = rounded_size((usage.all_peak or 0) / 2**20)
    return (
        f"The largest of its {usage.peak_tasks} tasks{where} used at most "
        f"{rounded_size(usage.peak / 2**20)}: all of them at most {together}{of}."
    )


def advice(usage: JobUsage) -> str:
    """What to ask for the next time, for a job that could have done with less; else ""."""
    if not usage.final or usage.elapsed < SHORT.total_seconds():
        return ""
    less = []
    share, mean = usage.cpu_share, usage.cores_mean
    if share is not None and mean is not None and share < LITTLE and usage.cores > 1:
        less.append(plural(max(1, -int(-mean * 1.2 // 1)), "core"))
    used, part = usage.all_peak, usage.memory_share
    if used is not None and part is not None and part < LITTLE:
        enough = _half_gb_above(used / 2**20 * 1.2)
        if enough < usage.memory_mb:
            less.append(f"{rounded_size(enough)} of memory")
    if not less:
        return ""
    return f"{' and '.join(less)} would have done: with less, the next one may start sooner."


def _half_gb_above(mb: float) -> int:
    return -int(-mb // 512) * 512


def percent(share: float) -> str:
    """A share in percent: "96 %"."""
    return f"{share * 100:.0f} %"
