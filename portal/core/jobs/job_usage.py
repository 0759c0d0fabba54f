"""The resource use of a job, running or ended, from Slurm's figures of its steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from portal.core.jobs.job import Job, JobTab
from portal.core.units import plural, rounded_size

Number = TypeVar("Number", int, float)

LIVE_EVERY = timedelta(seconds=10)
"""Minimum interval of queries to Slurm's nodes for one running job, for all viewers together."""
END_EVERY = timedelta(seconds=30)
"""Minimum interval of queries to accounting, until it has the end."""
LATELY = timedelta(minutes=5)
"""Maximum time between two measurements from which the present use is computed."""
SHORT = timedelta(minutes=2)
"""Minimum run time of a job for advice on its resources."""
LITTLE = 0.5
"""Share of its resources below which a job could do with less."""


@dataclass(frozen=True)
class StepUse:
    """One step of a job: the batch script, or a program started by srun."""

    id: str
    """"batch", "extern", "interactive" or its number."""
    tasks: int = 1
    cpu_seconds: float | None = None
    """CPU time of all of its tasks so far."""
    memory: int | None = None
    """Bytes in use by all of its tasks."""
    peak: int | None = None
    """Peak of its largest task, in bytes."""
    peak_node: str = ""
    """The node of that task."""
    gpu_percent: float | None = None
    gpu_memory: int | None = None
    """Bytes."""


@dataclass(frozen=True)
class EndedUse:
    """The use of an ended job, from accounting."""

    steps: tuple[StepUse, ...]
    cores: int
    elapsed: float
    """Run time in seconds."""
    memory_mb: int
    """Allocated MiB, on all of its nodes; 0 if unknown."""


@dataclass(frozen=True)
class JobUsage:
    """A job's use at the last query of Slurm."""

    at: datetime
    start: datetime | None
    """Start of the measured run: a requeued job runs again under its id."""
    final: bool = False
    """Whether the job had ended, so that the values are final."""
    cores: int = 0
    elapsed: float = 0.0
    """Seconds since the start of the run; its duration if it has ended."""
    memory_mb: int = 0
    """Allocated MiB, on all of its nodes; 0 if unknown."""
    cpu_seconds: float | None = None
    cores_now: float | None = None
    """Mean number of busy cores since the previous measurement."""
    memory: int | None = None
    """Bytes in use by all of its tasks."""
    peak: int | None = None
    """Peak of the largest of its tasks, in bytes."""
    peak_node: str = ""
    peak_tasks: int = 1
    """Number of tasks in the step of the largest task."""
    gpu_percent: float | None = None
    gpu_memory: int | None = None
    """Bytes."""
    steps: tuple[str, ...] = ()
    """The measured steps; while the job runs, steps that have ended are missing."""
    problem: str = ""
    """Why Slurm has no measurements, in words."""

    @property
    def partial(self) -> bool:
        """Whether steps may be missing, so that the sums do not cover the whole run."""
        return not self.final and any(step.isdecimal() for step in self.steps)

    @property
    def measured(self) -> bool:
        """Whether there is anything to show."""
        return self.cpu_seconds is not None or self.peak is not None or self.memory is not None

    @property
    def cores_mean(self) -> float | None:
        """Mean number of busy cores since the start."""
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
        """Peak of all of its tasks together, in bytes; with several tasks an upper bound."""
        return None if self.peak is None else self.peak * self.peak_tasks

    @property
    def memory_share(self) -> float | None:
        """The peak as share of its memory, 0 to 1; an estimate with several tasks."""
        peak = self.all_peak
        return None if peak is None or not self.memory_mb else min(peak / 2**20 / self.memory_mb, 1)


def live_usage(
    job: Job, steps: Sequence[StepUse], now: datetime, previous: JobUsage | None
) -> JobUsage:
    """The use of a running job; `previous` is its last measurement, if there is one."""
    start, report = job.report.start, job.report
    usage = JobUsage(
        at=now,
        start=start,
        cores=report.cpus,
        elapsed=(now - start).total_seconds() if start else 0.0,
        memory_mb=report.memory_mb,
        memory=_sum(step.memory for step in steps),
    )
    usage = _with_steps(usage, steps)
    return replace(usage, cores_now=_cores_now(usage, previous))


def ended_usage(job: Job, ended: EndedUse, now: datetime) -> JobUsage:
    """The use of a job that has ended."""
    usage = JobUsage(
        at=now,
        start=job.report.start,
        final=True,
        cores=ended.cores or job.report.cpus,
        elapsed=ended.elapsed,
        memory_mb=ended.memory_mb or job.report.memory_mb,
    )
    return _with_steps(usage, ended.steps)


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
    measured = [value for value in values if value is not None]
    return sum(measured[1:], measured[0]) if measured else None


def _cores_now(now: JobUsage, previous: JobUsage | None) -> float | None:
    """Busy cores since the previous measurement; None if that is too old or of another run."""
    if previous is None or previous.start != now.start or now.at - previous.at > LATELY:
        return None
    seconds = (now.at - previous.at).total_seconds()
    if now.cpu_seconds is None or previous.cpu_seconds is None or seconds <= 0:
        return None
    if not set(previous.steps) <= set(now.steps):
        return None  # the CPU time of an ended step is missing
    used = max(now.cpu_seconds - previous.cpu_seconds, 0.0) / seconds
    return min(used, float(now.cores)) if now.cores else used


def is_due(job: Job, stored: JobUsage | None) -> timedelta | None:
    """The minimum interval until the next query of Slurm; None for no further query."""
    if job.report.start is None or job.gone:
        return None
    if job.tab is JobTab.RUNNING:
        return LIVE_EVERY if job.report.nodes else None
    if job.tab is not JobTab.ENDED or (stored is not None and stored.final):
        return None
    return END_EVERY


def usage_of(job: Job, stored: JobUsage | None) -> JobUsage | None:
    """The stored use, if it belongs to the job's current or last run; else None."""
    return stored if stored is not None and stored.start == job.report.start else None


def cores_words(cores: float) -> str:
    """A number of busy cores: "3.8", "0.05", "12"."""
    return f"{cores:.2f}" if cores < 0.1 else f"{cores:.1f}".removesuffix(".0")


def cpu_words(usage: JobUsage) -> str:
    """The use of its cores, in a sentence; "" if it is not known."""
    mean, share = usage.cores_mean, usage.cpu_share
    if mean is None or share is None:
        return ""
    verb = "It kept" if usage.final else "So far it has kept"
    mean = min(mean, usage.cores)
    if usage.cores == 1:
        return f"{verb} its core busy {percent(share)} of the time."
    return f"{verb} {cores_words(mean)} of its {usage.cores} cores busy on average."


def memory_words(usage: JobUsage) -> str:
    """The peak of its memory, in a sentence; "" if it is not known."""
    if usage.peak is None:
        return ""
    of = f" of {rounded_size(usage.memory_mb)}" if usage.memory_mb else ""
    if usage.peak_tasks == 1:
        subject = "What runs now" if usage.partial else "It"
        return f"{subject} used at most {rounded_size(usage.peak / 2**20)}{of}."
    where = f" (on {usage.peak_node})" if usage.peak_node else ""
    together = rounded_size((usage.all_peak or 0) / 2**20)
    return (
        f"The largest of its {usage.peak_tasks} tasks{where} used at most "
        f"{rounded_size(usage.peak / 2**20)}: all of them at most {together}{of}."
    )


def advice(usage: JobUsage) -> str:
    """Advice on the next request, for a job that could have done with less; else ""."""
    if not usage.final or usage.elapsed < SHORT.total_seconds():
        return ""
    reduced = []
    share, mean = usage.cpu_share, usage.cores_mean
    if share is not None and mean is not None and share < LITTLE and usage.cores > 1:
        reduced.append(plural(max(1, -int(-mean * 1.2 // 1)), "core"))
    used, part = usage.all_peak, usage.memory_share
    if used is not None and part is not None and part < LITTLE:
        enough_mb = _half_gb_above(used / 2**20 * 1.2)
        if enough_mb < usage.memory_mb:
            reduced.append(f"{rounded_size(enough_mb)} of memory")
    if not reduced:
        return ""
    return f"{' and '.join(reduced)} would have done: with less, the next one may start sooner."


def _half_gb_above(mb: float) -> int:
    return -int(-mb // 512) * 512


def percent(share: float) -> str:
    """A share in percent: "96 %"."""
    return f"{share * 100:.0f} %"
