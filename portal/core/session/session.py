"""A session and its states; transitions.py is the state machine."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TypedDict

from pydantic import BaseModel, ConfigDict

from portal.core.launch.mounts import (
    Mount,
    mount_name,
    path_in_own_home,
    path_of_shared,
    storage_of,
)
from portal.core.slurm_options import SlurmOptions


class State(StrEnum):
    """State of a session in the portal."""

    SUBMITTING = "SUBMITTING"
    """Stored, not yet known to be in Slurm's queue; shown to users as PENDING."""
    PENDING = "PENDING"
    STARTING = "STARTING"
    """The job is running; its gateway has not called back yet."""
    RUNNING = "RUNNING"
    ENDING = "ENDING"
    FINISHED = "FINISHED"
    FAILED = "FAILED"


WAITING = frozenset({State.SUBMITTING, State.PENDING, State.STARTING})
LIVE = WAITING | {State.RUNNING, State.ENDING}
OVER = frozenset({State.FINISHED, State.FAILED})


class Home(StrEnum):
    """Kind of a session's home directory (sessions.home)."""

    SESSION = "session"
    """A new, empty directory, deleted at the end."""
    PERSISTENT = "persistent"
    """The owner's home directory on the cluster."""


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
    """One session: its request, its job, and its progress.

    Memory in MiB, limits in minutes, times in UTC, CPU use in percent of one core.
    """

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: str
    """32 hexadecimal digits; also the name of the Slurm job, by which it can be found."""
    name: str
    named: bool = False
    """Whether its owner chose the name; a generated one is not reused."""
    owner: str
    environment: str
    version: str
    image: str = ""
    """The owner's own image, as they named it; "" for one of the site's."""
    cpus: int
    memory_mb: int
    partition: str | None = None
    account: str = ""
    qos: str = ""
    reservation: str = ""
    constraint: str = ""
    """Slurm's own options, as they were chosen; "" leaves them to Slurm."""
    exclusive: bool = False
    time_limit: int | None = None
    begin: datetime | None = None
    """sbatch's --begin: the end of the maintenance during which it was launched, as last known."""
    fgpu: float | None = None
    """The amount of GPU it was granted, in the administrator's unit; None without a GPU."""
    gpu_kind: str = ""
    """Slurm's Type of that GPU, if GPUs have one."""
    gres: str = ""
    """The value of sbatch's --gres: "shard:2", "gpu:a100:2"; "" without a GPU."""
    gpu_memory_mb: int | None = None
    """The slice's memory, according to the settings."""
    gpu_sm_percent: int | None = None
    """The slice's share of the multiprocessors."""
    shared_memory_mb: int | None = None
    """The requested size; None: the default share of the memory."""
    shared_memory_cap_mb: int | None = None
    """The administrator's cap at launch, which also bounds the default share."""
    env_names: tuple[str, ...] = ()
    """Names of the environment variables; their values may be secret and stay in the store."""
    mounts: tuple[Mount, ...] = ()
    home: Home = Home.SESSION
    preset: str = ""
    """The preset that it was launched from; "" if none."""
    hub_prefix: str = ""
    """The path of JupyterHub's server in it, for example "/user/alice/"; "" without one."""

    state: State = State.SUBMITTING
    created: datetime
    token_hash: str
    """SHA-256 of the secret that authenticates the session's runner; "" until a requeued session
    has a new one."""
    submitted: datetime
    """When the latest attempt to submit began; before the first, when it was last known to wait for
    it."""
    attempts: int = 1
    """How often its submission was begun."""
    batch: str | None = None
    """Shared by the sessions of one launch: all of them reach the queue, or none."""

    job_id: str | None = None
    pending_reason: str | None = None
    estimated_start: datetime | None = None
    ahead: int | None = None
    """Number of jobs ahead of it in Slurm's queue; None if unknown."""
    lost: datetime | None = None
    """Since when neither the queue nor accounting has had the job: its state is unknown."""
    node: str | None = None
    address: str | None = None
    port: int | None = None
    started: datetime | None = None
    progress: str = ""
    """The job's own description of its work before the container starts; "" if none."""
    progress_at: datetime | None = None
    ready: datetime | None = None
    """When the session's gateway called back; before that no app can be reached."""
    deadline: datetime | None = None
    """When it reaches its time limit in Slurm."""
    restarts: int = 0
    """How often Slurm has requeued it after it had started."""
    requeued: datetime | None = None
    """When it was last requeued."""

    extending: datetime | None = None
    """Since when an extension is in progress: a lock across all processes."""
    stop_requested: datetime | None = None
    stopped_by: str | None = None
    stop_reason: str = ""
    """Why, in that person's words."""
    ended: datetime | None = None
    cause: Cause | None = None
    end_text: str | None = None
    end_log: str = ""
    """The last lines of its log, if they explain the end."""
    end_seen: datetime | None = None
    """When its owner dismissed the notice of its end, or when it ended at their own request."""
    exit_code: int | None = None
    cleaned: bool = False
    """Whether the session's files have been deleted from the user's home."""

    usage_at: datetime | None = None
    cpu_seconds: float | None = None
    cpu_percent: float | None = None
    memory_used: int | None = None
    """Bytes in use by the job, without reclaimable page cache."""
    memory_peak: int | None = None
    """The largest value of memory_used that was reported."""
    home_files: int | None = None
    """Files in the session's own home that are deleted at its end; hidden ones do not count."""
    home_bytes: int | None = None
    """Size of these files."""
    oom_kills: int = 0
    oom_at: datetime | None = None
    """When the kernel last killed one of its processes for lack of memory."""
    oom_program: str = ""
    """Name of that process; "" if unknown."""
    oom_seen: datetime | None = None
    """When its owner dismissed the notice of that kill."""
    gpu_memory_used: int | None = None
    """Bytes of GPU memory in use by the job, measured by the node's watchdog."""
    gpu_percent: float | None = None
    """Use of the multiprocessors, in percent of the whole GPU."""
    gpu_kills: int = 0
    """Processes killed for exceeding the slice's GPU memory."""
    apps: tuple[str, ...] = ()
    """The apps that its image can run, as detected by the runner; () until it has called back."""
    log_read: datetime | None = None
    """When an administrator last read its log; `log_read_by`: their name."""
    log_read_by: str | None = None
    last_used: datetime | None = None
    """When one of its apps was last in use, by a person or a computation."""

    @property
    def slurm(self) -> SlurmOptions:
        """The choices among Slurm's own options."""
        return SlurmOptions(
            self.account, self.qos, self.reservation, self.constraint, self.exclusive
        )

    @property
    def shm_mb(self) -> int:
        """Size of /dev/shm: the requested size, else the default share."""
        return self.shared_memory_mb or usual_shm(self.memory_mb, self.shared_memory_cap_mb)


def usual_shm(memory_mb: int, cap_mb: int | None) -> int:
    """Default size of /dev/shm: half of the memory, within the cap."""
    return min(memory_mb // 2, cap_mb or memory_mb)


class Facts(TypedDict, total=False):
    """Changes to a session other than its state; fields as in Session."""

    token_hash: str
    submitted: datetime
    attempts: int
    job_id: str | None
    pending_reason: str | None
    begin: datetime | None
    estimated_start: datetime | None
    ahead: int | None
    lost: datetime | None
    node: str | None
    address: str | None
    port: int | None
    started: datetime | None
    progress: str
    progress_at: datetime | None
    ready: datetime | None
    deadline: datetime | None
    restarts: int
    requeued: datetime | None
    extending: datetime | None
    stop_requested: datetime | None
    stopped_by: str | None
    stop_reason: str
    ended: datetime | None
    cause: Cause | None
    end_text: str | None
    end_log: str
    end_seen: datetime | None
    exit_code: int | None
    cleaned: bool
    usage_at: datetime | None
    cpu_seconds: float | None
    cpu_percent: float | None
    memory_used: int | None
    memory_peak: int | None
    home_files: int | None
    home_bytes: int | None
    oom_kills: int
    oom_at: datetime | None
    oom_program: str
    oom_seen: datetime | None
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
    "memory_peak": None,
    "home_files": None,
    "home_bytes": None,
    "oom_kills": 0,
    "oom_at": None,
    "oom_program": "",
    "oom_seen": None,
    "gpu_memory_used": None,
    "gpu_percent": None,
    "gpu_kills": 0,
}
"""Values before the first heartbeat of a job."""


class Changes(Facts, total=False):
    """Changes that may include the state; only transitions.py creates these."""

    state: State


SUSPENDED = "Suspended"
"""`pending_reason` of a session whose job is suspended, for which Slurm has no reason."""
HELD = frozenset({"JobHeldUser", "JobHeldAdmin"})
NEVER_CALLED = "Slipway, since nothing in it had called back"
"""`stopped_by` of a session that started but never called back."""
UNUSED = "Slipway, since nobody used it"
"""`stopped_by` of a session that the idle culler ends."""


def path_in_session(session: Session, mount: Mount, storage: str) -> str:
    """A mount's path in the session; `storage`: the site's setting."""
    if session.home is Home.SESSION:
        return f"~/{mount_name(mount, session.mounts)}"
    if mount.owner:
        return path_of_shared(mount.owner, mount.name, storage)
    return path_in_own_home(mount.folder, storage_of(session.owner, storage))
