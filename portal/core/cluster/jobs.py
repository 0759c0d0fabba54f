"""The Slurm job that carries a session: how it is described and what Slurm reports of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from portal.core.launch.mounts import MountPoint
from portal.core.launch.request import format_size


@dataclass(frozen=True)
class JobDescription:
    """All that the batch script needs; memory in MiB, the time limit in minutes."""

    session: str
    user: str
    cpus: int
    memory_mb: int
    partition: str | None
    time_limit: int | None
    image: str
    toolkit: str
    directory: str
    """Where sessions and logs live, relative to the user's home."""
    gres: str = ""
    """The GPU that is asked for, as sbatch's --gres has it; "" for none."""
    mounts: tuple[MountPoint, ...] = ()
    dotfiles: tuple[str, ...] = ()
    """Files of the user's home, relative to it, that the session's new home gets copies of."""


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


@dataclass(frozen=True)
class NodeGpus:
    """The GPUs of one kind in one node: how many, and their shards."""

    kind: str
    """Their Type in gres.conf; "" where they have none."""
    gpus: int
    shards: int = 0


@dataclass(frozen=True)
class Partition:
    """One Slurm partition (to users: a resource group) and its largest node."""

    name: str
    default: bool
    up: bool
    max_cpus: int
    max_memory_mb: int
    max_minutes: int | None
    gpus: tuple[NodeGpus, ...] = ()
    """For each kind of GPU the most that one node has."""
    max_shards: int | None = None
    max_gpus: int | None = None
    """The most that a session may have of them by somebody's limit; None where none is set."""

    def too_much(self, what: str) -> str:
        """Say why no request may ask for more "cpus", "memory" or "time".

        Only somebody's limit bounds "shards" and "gpus" (core/cluster/effective_limits.py); the nodes' own bound is
        a matter of their kind (core/cluster/gpu_offers.py).
        """
        match what:
            case "cpus":
                return f"the largest node here has {self.max_cpus} cores"
            case "memory":
                return f"the largest node here has {format_size(self.max_memory_mb)}"
            case _:
                return f"sessions here may run {self.max_minutes} minutes at most"


@dataclass(frozen=True)
class Node:
    """One node of one partition; a node of several is listed for each."""

    name: str
    partition: str
    cpus: int
    memory_mb: int
    usable: bool
    gpus: tuple[NodeGpus, ...] = ()
