"""The Slurm job that carries a session: how it is described and what Slurm reports of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class JobState(StrEnum):
    """Slurm's base states, with the ones that mean the same to us folded together."""

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


_OVER = frozenset(JobState) - {
    JobState.PENDING,
    JobState.CONFIGURING,
    JobState.RUNNING,
    JobState.SUSPENDED,
    JobState.COMPLETING,
}

# Slurm names more states than a session has use for (man squeue, JOB STATE CODES).
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
    """Read Slurm's word for a state; raises ValueError for one that no version has."""
    base = word.partition(" ")[0]  # sacct says "CANCELLED by 1001"
    if base in _ALIASES:
        return _ALIASES[base]
    return JobState(base)


@dataclass(frozen=True)
class JobReport:
    """What squeue or sacct says of one job; times in UTC."""

    job_id: str
    user: str
    state: JobState
    reason: str | None = None
    nodes: tuple[str, ...] = ()
    submitted: datetime | None = None
    start: datetime | None = None
    """The real start, or Slurm's own estimate while the job is pending."""
    end: datetime | None = None
    deadline: datetime | None = None
    """When a running job's time is up."""
    time_limit: int | None = None
    """Minutes that it may run; None for no limit."""
    restarts: int = 0
    """How often Slurm has put it back into the queue."""
    exit_code: int | None = None
    partition: str = ""
    priority: int = 0
    ahead: int | None = None
    """How many jobs stand before it in the queue (core/cluster/queue.py)."""
    account: str = ""
    qos: str = ""
    cpus: int = 0
    memory_mb: int = 0
    """Cores and memory that Slurm gave it, or that it waits for."""
    shards: int = 0
    gpus: int = 0
    """Shards of GPUs, and whole GPUs; a GPU that is shared out does not count as one."""
    cancelled_by: str | None = None
    """Who cancelled it, where accounting says so: a user's name, or number when nameless."""


@dataclass(frozen=True)
class Estimate:
    """When and where Slurm would start a job that nobody has submitted, as it guesses now."""

    start: datetime | None
    node: str
    reason: str
    """Why there is no start, in words; empty where there is one."""
    later: bool = False
    """Slurm was not asked, as it had been a moment ago: worth asking again in a few seconds."""
