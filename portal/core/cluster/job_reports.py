"""Slurm jobs: their states, and reports about them from squeue and sacct."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class JobState(StrEnum):
    """Slurm's base states; states that are equivalent for sessions are merged."""

    PENDING = "PENDING"
    CONFIGURING = "CONFIGURING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    COMPLETING = "COMPLETING"
    COMPLETED = "COMPLETED"
    CANCELLED = "CANCELLED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    DEADLINE = "DEADLINE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    NODE_FAIL = "NODE_FAIL"
    BOOT_FAIL = "BOOT_FAIL"
    PREEMPTED = "PREEMPTED"

    @property
    def over(self) -> bool:
        """Whether a job in this state will never run again."""
        return self in _OVER

    @property
    def holds(self) -> bool:
        """Whether a job in this state holds its resources."""
        return self in HOLDING


_OVER = frozenset(JobState) - {
    JobState.PENDING,
    JobState.CONFIGURING,
    JobState.RUNNING,
    JobState.SUSPENDED,
    JobState.COMPLETING,
}

HOLDING = frozenset(JobState) - _OVER - {JobState.PENDING}
"""States of jobs that hold their resources."""

# Slurm has more states than sessions need (man squeue, JOB STATE CODES).
_ALIASES = {
    "REQUEUED": JobState.PENDING,
    "REQUEUE_FED": JobState.PENDING,
    "REQUEUE_HOLD": JobState.PENDING,
    "RESV_DEL_HOLD": JobState.PENDING,
    "SPECIAL_EXIT": JobState.PENDING,
    "STOPPED": JobState.SUSPENDED,
    "RESIZING": JobState.RUNNING,
    "SIGNALING": JobState.RUNNING,
    "STAGE_OUT": JobState.COMPLETING,
    "POWER_UP_NODE": JobState.CONFIGURING,
    "UPDATE_DB": JobState.COMPLETING,
    "LAUNCH_FAILED": JobState.FAILED,
    "RECONFIG_FAIL": JobState.FAILED,
    "REVOKED": JobState.CANCELLED,
    "EXPEDITING": JobState.PENDING,
}


def job_state(word: str) -> JobState:
    """Parse Slurm's name of a state; raises ValueError for an unknown one."""
    base = word.partition(" ")[0]  # sacct prints "CANCELLED by 1001"
    if base in _ALIASES:
        return _ALIASES[base]
    return JobState(base)


@dataclass(frozen=True)
class JobReport:
    """One job as reported by squeue or sacct; times in UTC."""

    job_id: str
    user: str
    state: JobState
    reason: str | None = None
    nodes: tuple[str, ...] = ()
    submitted: datetime | None = None
    start: datetime | None = None
    """The actual start, or Slurm's estimate while the job is pending."""
    end: datetime | None = None
    deadline: datetime | None = None
    """When a running job reaches its time limit."""
    time_limit: int | None = None
    """Minutes; None for no limit."""
    restarts: int = 0
    """Number of requeues."""
    exit_code: int | None = None
    partition: str = ""
    priority: int = 0
    ahead: int | None = None
    """Number of jobs ahead of it in the queue (core/cluster/queue.py)."""
    account: str = ""
    qos: str = ""
    cpus: int = 0
    memory_mb: int = 0
    """Cores and memory, allocated or requested."""
    shards: int = 0
    gpus: int = 0
    """GPU shards, and whole GPUs; a GPU split into shards does not count as a whole one."""
    cancelled_by: str | None = None
    """The user who cancelled it, by name or else uid; None if accounting has none."""

    @property
    def on_each_node(self) -> tuple[int, int]:
        """Cores and MiB on each of its nodes; squeue has totals, so equal shares are assumed."""
        share = max(len(self.nodes), 1)
        return -(-self.cpus // share), -(-self.memory_mb // share)


FARTHEST_START = timedelta(days=365)
"""Slurm adds up the time limits of the jobs ahead; an unlimited one among them adds centuries."""


def plausible_start(estimate: datetime | None, now: datetime) -> datetime | None:
    """Slurm's estimate of a start; None beyond FARTHEST_START."""
    return estimate if estimate and estimate - now <= FARTHEST_START else None


def is_unlimited(report: JobReport) -> bool:
    """Whether a job has no time limit; False if it ended unstarted, with a limit not reported."""
    never_started = report.state.over and report.start is None
    return report.time_limit is None and not never_started


@dataclass(frozen=True)
class Estimate:
    """Slurm's estimate of when and where a job would start; the job is not submitted."""

    start: datetime | None
    node: str
    reason: str
    """Why there is no start, in words; empty if there is one."""
    later: bool = False
    """Rate-limited, Slurm was not asked: retry in a few seconds."""
