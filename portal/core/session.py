"""A session, the states it can be in, and what Slurm's word does to it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from portal.core.folders import Mount
from portal.core.job import JobReport, JobState


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
    shared_memory_mb: int | None = None
    """What was asked for; None is the usual share of the memory."""
    shared_memory_cap_mb: int | None = None
    """The administrator's cap when it was launched; the usual share stays below it."""
    env_names: tuple[str, ...] = ()
    """Names of the environment variables; their values may be secret and stay in the store."""
    mounts: tuple[Mount, ...] = ()

    state: State
    created: datetime
    token_hash: str
    """SHA-256 of the secret that the session's runner proves itself with."""
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

    @property
    def shm_mb(self) -> int:
        """Size of /dev/shm: what was asked for, else the usual share."""
        return self.shared_memory_mb or usual_shm(self.memory_mb, self.shared_memory_cap_mb)


def usual_shm(memory_mb: int, cap_mb: int | None) -> int:
    """Size of /dev/shm when nobody asked for one: half of the memory, within the cap."""
    return min(memory_mb // 2, cap_mb or memory_mb)


Changes = dict[str, object]

NOT_WAITING: Changes = {"pending_reason": None, "estimated_start": None, "ahead": None}


def observe(session: Session, report: JobReport, now: datetime) -> Changes:
    """Say what Slurm's report of the job changes in a live session; nothing new gives {}."""
    if report.state.over:
        return _ended(session, report, now)
    changes: Changes = {"job_id": report.job_id, "lost": None}
    if session.state is not State.ENDING:
        changes["state"] = _live_state(session, report.state)
    if report.state is JobState.PENDING:
        changes |= {
            "pending_reason": report.reason,
            "estimated_start": report.start,
            "ahead": report.ahead,
        }
    else:
        changes |= {**NOT_WAITING, "started": report.start}
        if report.nodes:
            changes["node"] = report.nodes[0]
    return {key: value for key, value in changes.items() if getattr(session, key) != value}


def _live_state(session: Session, state: JobState) -> State:
    if state is JobState.PENDING:
        return State.PENDING
    if state is JobState.COMPLETING:
        return State.ENDING
    return State.RUNNING if session.ready else State.STARTING


def _ended(session: Session, report: JobReport, now: datetime) -> Changes:
    cause, text = explain_end(session, report)
    failed = cause not in (Cause.FINISHED, Cause.CANCELLED, Cause.TIME_LIMIT)
    return {
        "state": State.FAILED if failed else State.FINISHED,
        "job_id": report.job_id,
        "started": session.started or report.start,
        "ended": report.end or now,
        "cause": cause,
        "end_text": text,
        "exit_code": report.exit_code,
        **NOT_WAITING,
    }


def explain_end(session: Session, report: JobReport) -> tuple[Cause, str]:
    """Name the true cause of a session's end, in words for its owner."""
    if session.stop_requested:
        return Cause.CANCELLED, f"Ended by {session.stopped_by}."
    never_ready = session.ready is None
    match report.state:
        case JobState.CANCELLED:
            by = f" by {report.cancelled_by}" if report.cancelled_by else ""
            return Cause.CANCELLED, f"Cancelled{by} with Slurm's own commands."
        case JobState.TIMEOUT | JobState.DEADLINE:
            return Cause.TIME_LIMIT, "The time limit was reached."
        case JobState.OUT_OF_MEMORY:
            return Cause.OUT_OF_MEMORY, (
                "The session needed more memory than it asked for. Launch it again with more."
            )
        case JobState.NODE_FAIL | JobState.BOOT_FAIL:
            return Cause.NODE_FAILURE, "The compute node failed. Launch the session again."
        case JobState.PREEMPTED:
            return Cause.PREEMPTED, "A job of higher priority needed the place."
        case _ if never_ready:
            return Cause.START_FAILED, "The session did not start. Its log says why."
        case JobState.COMPLETED:
            return Cause.FINISHED, "The session ended by itself."
        case _:
            return Cause.FAILED, f"The session failed (exit code {report.exit_code})."
