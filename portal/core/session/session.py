"""A session and the states it can be in; transitions.py says how it gets from one to another."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TypedDict

from pydantic import BaseModel, ConfigDict

from portal.core.launch.mounts import Mount


class State(StrEnum):
    """Where a session is in its life, as the portal knows it."""

    SUBMITTING = "SUBMITTING"
    """Stored, not yet known to be in Slurm's queue; shown to people as PENDING."""
    PENDING = "PENDING"
    STARTING = "STARTING"
    """The job runs; the gateway in it has not called back yet."""
    RUNNING = "RUNNING"
    ENDING = "ENDING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"


WAITING = frozenset({State.SUBMITTING, State.PENDING, State.STARTING})
LIVE = WAITING | {State.RUNNING, State.ENDING}
OVER = frozenset({State.FINISHED, State.FAILED})


class Cause(StrEnum):
    """Why a session ended."""

    FINISHED = "finished"
    CANCELLED = "cancelled"
    TIME_LIMIT = "time_limit"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAILURE = "node_failure"
    PREEMPTED = "preempted"
    START_FAILED = "start_failed"
    IDLE = "idle"
    FAILED = "failed"


class Session(BaseModel):
    """One session: what was asked for, the job that carries it, and how it went.

    Memory in MiB, limits in minutes, times in UTC, CPU use in percent of one core.
    """

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: str
    """32 hexadecimal digits; also the name of the Slurm job, so that nothing is ever lost."""
    name: str
    owner: str
    environment: str
    version: str
    cpus: int
    memory_mb: int
    partition: str | None = None
    time_limit: int | None = None
    fgpu: float | None = None
    """How much of a GPU it was granted, in the administrator's unit; None is no GPU at all."""
    gpu_kind: str = ""
    """Slurm's Type of that GPU, where GPUs have one."""
    gres: str = ""
    """What sbatch is asked for to get it: "shard:2", "gpu:a100:2"; "" for no GPU."""
    gpu_memory_mb: int | None = None
    """The slice's memory, as the settings know the GPU's."""
    gpu_sm_percent: int | None = None
    """The slice's share of the multiprocessors."""
    shared_memory_mb: int | None = None
    """What was asked for; None is the usual share of the memory."""
    shared_memory_cap_mb: int | None = None
    """The administrator's cap when it was launched; the usual share stays below it."""
    env_names: tuple[str, ...] = ()
    """Names of the environment variables; their values may be secret and stay in the store."""
    mounts: tuple[Mount, ...] = ()

    state: State = State.SUBMITTING
    created: datetime
    token_hash: str
    """SHA-256 of the secret that the session's runner proves itself with; "" while a session that
    Slurm put back into the queue has no new one yet."""
    submitted: datetime
    """When the latest attempt to submit began."""
    attempts: int = 1
    batch: str | None = None
    """The sessions of one launch carry the same: all of them reach the queue, or none."""

    job_id: str | None = None
    pending_reason: str | None = None
    estimated_start: datetime | None = None
    ahead: int | None = None
    """How many jobs stand before it in Slurm's queue, as far as anybody can tell."""
    lost: datetime | None = None
    """Since when neither the queue nor accounting has known the job: nobody knows its state."""
    node: str | None = None
    address: str | None = None
    port: int | None = None
    started: datetime | None = None
    ready: datetime | None = None
    """When the session's gateway called back; without it no app can be reached."""
    deadline: datetime | None = None
    """When Slurm ends it for its time limit."""
    restarts: int = 0
    """How often Slurm has put it back into the queue after it had started."""
    requeued: datetime | None = None
    """When that happened last."""

    extending: datetime | None = None
    """Since when somebody is giving it more time: one at a time, over all processes."""
    stop_requested: datetime | None = None
    stopped_by: str | None = None
    ended: datetime | None = None
    cause: Cause | None = None
    end_text: str | None = None
    end_log: str = ""
    """The last lines of its log, where the end needs explaining."""
    exit_code: int | None = None
    cleaned: bool = False
    """Whether the session's files are gone from the user's home."""

    usage_at: datetime | None = None
    cpu_seconds: float | None = None
    cpu_percent: float | None = None
    memory_used: int | None = None
    """Bytes in use by the job, without the page cache that can be given back."""
    oom_kills: int = 0
    gpu_memory_used: int | None = None
    """Bytes of the GPU's memory in use by the job, as the node's watchdog measured it."""
    gpu_percent: float | None = None
    """Use of the multiprocessors, in percent of the whole GPU."""
    gpu_kills: int = 0
    """Processes ended for taking more of the GPU's memory than the slice has."""
    apps: tuple[str, ...] = ()
    """The apps that its image can run, as the runner found them; () until it has called back."""
    log_read: datetime | None = None
    """When an administrator last read its log, and who that was."""
    log_read_by: str | None = None
    last_used: datetime | None = None
    """When somebody, or a computation, last used one of its apps."""

    @property
    def shm_mb(self) -> int:
        """Size of /dev/shm: what was asked for, else the usual share."""
        return self.shared_memory_mb or usual_shm(self.memory_mb, self.shared_memory_cap_mb)


def usual_shm(memory_mb: int, cap_mb: int | None) -> int:
    """Size of /dev/shm when nobody asked for one: half of the memory, within the cap."""
    return min(memory_mb // 2, cap_mb or memory_mb)


class Facts(TypedDict, total=False):
    """What changes about a session without changing its state; fields as in Session."""

    token_hash: str
    submitted: datetime
    attempts: int
    job_id: str | None
    pending_reason: str | None
    estimated_start: datetime | None
    ahead: int | None
    lost: datetime | None
    node: str | None
    address: str | None
    port: int | None
    started: datetime | None
    ready: datetime | None
    deadline: datetime | None
    restarts: int
    requeued: datetime | None
    extending: datetime | None
    stop_requested: datetime | None
    stopped_by: str | None
    ended: datetime | None
    cause: Cause | None
    end_text: str | None
    end_log: str
    exit_code: int | None
    cleaned: bool
    usage_at: datetime | None
    cpu_seconds: float | None
    cpu_percent: float | None
    memory_used: int | None
    oom_kills: int
    gpu_memory_used: int | None
    gpu_percent: float | None
    gpu_kills: int
    apps: tuple[str, ...]
    log_read: datetime | None
    log_read_by: str | None
    last_used: datetime | None


NO_METERS: Facts = {
    "usage_at": None,
    "cpu_seconds": None,
    "cpu_percent": None,
    "memory_used": None,
    "oom_kills": 0,
    "gpu_memory_used": None,
    "gpu_percent": None,
    "gpu_kills": 0,
}
"""Before the first heartbeat of a job."""


class Changes(Facts, total=False):
    """A change that may include the state; only transitions.py writes these."""

    state: State


SUSPENDED = "Suspended"
"""What stands as the reason of a session whose job was paused; Slurm has no reason of its own."""
HELD = frozenset({"JobHeldUser", "JobHeldAdmin"})
NEVER_CALLED = "Slipway, since nothing in it had called back"
"""`stopped_by` of a session that started and was never heard of."""
UNUSED = "Slipway, since nobody used it"
"""`stopped_by` of a session that the idle culler ends."""
