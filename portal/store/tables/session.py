"""Sessions, their variables and launch keys."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Index, text
from sqlmodel import Field, SQLModel

from portal.core.launch.mounts import Mount
from portal.core.session.session import Home
from portal.store.tables.columns import MountList, WordTuple, time_column

_USAGE = ("owner", "account", "environment", "cpus", "fgpu")
_LIVE_HUB = text("hub_prefix <> '' AND state NOT IN ('FINISHED', 'FAILED')")


class SessionRow(SQLModel, table=True):
    """One session; fields as in core.session.session.Session."""

    __tablename__ = "session"
    __table_args__ = (
        Index("session_newest", "owner", "created", "id", "state"),
        Index("session_newest_of_all", "created", "id"),
        Index("session_tab", "owner", "state", "created", "id"),
        Index("session_tab_of_all", "state", "created", "id"),
        Index("session_unseen", "owner", "end_seen", "ended"),
        # Covering indexes of the sums in store/usage_report.py.
        Index("session_usage_started", "started", "ended", *_USAGE),
        Index("session_usage_ended", "ended", "started", *_USAGE),
        # Two live sessions cannot have the same path.
        Index(
            "session_hub",
            "hub_prefix",
            unique=True,
            sqlite_where=_LIVE_HUB,
            postgresql_where=_LIVE_HUB,
        ),
    )

    id: str = Field(primary_key=True)
    name: str
    named: bool = False
    owner: str
    environment: str
    version: str
    image: str = ""
    cpus: int
    memory_mb: int
    partition: str | None = None
    account: str = ""
    qos: str = ""
    reservation: str = ""
    constraint: str = ""
    exclusive: bool = False
    time_limit: int | None = None
    begin: datetime | None = time_column(default=None)
    fgpu: float | None = None
    gpu_kind: str = ""
    gres: str = ""
    gpu_memory_mb: int | None = None
    gpu_sm_percent: int | None = None
    shared_memory_mb: int | None = None
    shared_memory_cap_mb: int | None = None
    env_names: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    mounts: tuple[Mount, ...] = Field(default=(), sa_type=MountList)
    home: str = Home.SESSION
    preset: str = ""
    hub_prefix: str = ""
    state: str
    created: datetime = time_column()
    token_hash: str
    submitted: datetime = time_column()
    attempts: int
    batch: str | None = Field(default=None, index=True)
    job_id: str | None = Field(default=None, index=True)
    pending_reason: str | None = None
    estimated_start: datetime | None = time_column(default=None)
    ahead: int | None = None
    lost: datetime | None = time_column(default=None)
    node: str | None = None
    address: str | None = None
    port: int | None = None
    started: datetime | None = time_column(default=None)
    progress: str = ""
    progress_at: datetime | None = time_column(default=None)
    ready: datetime | None = time_column(default=None)
    deadline: datetime | None = time_column(default=None)
    restarts: int = 0
    requeued: datetime | None = time_column(default=None)
    extending: datetime | None = time_column(default=None)
    stop_requested: datetime | None = time_column(default=None)
    stopped_by: str | None = None
    stop_reason: str = ""
    ended: datetime | None = time_column(default=None)
    cause: str | None = None
    end_text: str | None = None
    end_log: str = ""
    end_seen: datetime | None = time_column(default=None)
    exit_code: int | None = None
    cleaned: bool = Field(default=False, index=True)
    usage_at: datetime | None = time_column(default=None)
    cpu_seconds: float | None = None
    cpu_percent: float | None = None
    memory_used: int | None = Field(default=None, sa_type=BigInteger)
    memory_peak: int | None = Field(default=None, sa_type=BigInteger)
    home_files: int | None = None
    home_bytes: int | None = Field(default=None, sa_type=BigInteger)
    oom_kills: int = 0
    oom_at: datetime | None = time_column(default=None)
    oom_program: str = ""
    oom_seen: datetime | None = time_column(default=None)
    gpu_memory_used: int | None = Field(default=None, sa_type=BigInteger)
    gpu_percent: float | None = None
    gpu_kills: int = 0
    apps: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    last_used: datetime | None = time_column(default=None)
    log_read: datetime | None = time_column(default=None)
    log_read_by: str | None = None


class SessionEnvRow(SQLModel, table=True):
    """Environment variables of a session, as sealed JSON; separate, as lists do not need them."""

    __tablename__ = "session_env"

    session: str = Field(primary_key=True)
    variables: str
    hub: str = ""


class LaunchKeyRow(SQLModel, table=True):
    """A used Idempotency-Key and its request; `session` is the first of its batch."""

    __tablename__ = "launch_key"

    owner: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    session: str
    fingerprint: str


class SampleRow(SQLModel, table=True):
    """A session's use during one span of time; fields as in core.session_job.samples.Sample."""

    __tablename__ = "session_sample"

    session: str = Field(primary_key=True)
    at: datetime = time_column(primary_key=True)
    seconds: int
    until: datetime = time_column()
    reports: int
    cpu_seconds: float
    memory: int = Field(sa_type=BigInteger)
    gpu_percent: float | None = None
    gpu_memory: int | None = Field(default=None, sa_type=BigInteger)
