"""The database's tables. They hold what was checked elsewhere: a table validates nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Index, UniqueConstraint
from sqlalchemy.types import TypeDecorator
from sqlmodel import AutoString, Field, SQLModel

from portal.core.launch.mounts import Mount


class UtcDateTime(TypeDecorator[datetime]):
    """Keeps times in UTC; SQLite would otherwise forget the zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Store UTC, and refuse a time without a zone."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone")
        return value.astimezone(UTC)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        """Give back UTC with its zone."""
        return value.replace(tzinfo=UTC) if value is not None else None


class WordTuple(TypeDecorator[tuple[str, ...]]):
    """Keeps words that hold no space."""

    impl = AutoString
    cache_ok = True

    def process_bind_param(self, value: tuple[str, ...] | None, dialect: Dialect) -> str:
        """Join them."""
        return " ".join(value or ())

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[str, ...]:
        """Take them apart."""
        return tuple(value.split()) if value else ()


class MountList(TypeDecorator[tuple[Mount, ...]]):
    """Keeps mounts as JSON."""

    impl = AutoString
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        """Write them; a row made from a session's dump has them as dictionaries."""
        return json.dumps([dict(mount) for mount in value or ()])

    def process_result_value(self, value: Any, dialect: Dialect) -> tuple[Mount, ...]:
        """Read them."""
        return tuple(Mount(**mount) for mount in json.loads(value or "[]"))


def _time(**options: Any) -> Any:
    return Field(sa_type=UtcDateTime, **options)


class SessionRow(SQLModel, table=True):
    """One session; the fields are those of core.session.Session."""

    __tablename__ = "session"
    __table_args__ = (
        Index("session_newest", "owner", "created", "id", "state"),
        Index("session_newest_of_all", "created", "id"),
        Index("session_tab", "owner", "state", "created", "id"),
        Index("session_tab_of_all", "state", "created", "id"),
    )

    id: str = Field(primary_key=True)
    name: str
    owner: str
    environment: str
    version: str
    cpus: int
    memory_mb: int
    partition: str | None = None
    time_limit: int | None = None
    fgpu: float | None = None
    gpu_kind: str = ""
    gres: str = ""
    gpu_memory_mb: int | None = None
    gpu_sm_percent: int | None = None
    shared_memory_mb: int | None = None
    shared_memory_cap_mb: int | None = None
    env_names: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    mounts: tuple[Mount, ...] = Field(default=(), sa_type=MountList)
    state: str
    created: datetime = _time()
    token_hash: str
    submitted: datetime = _time()
    attempts: int
    batch: str | None = Field(default=None, index=True)
    job_id: str | None = Field(default=None, index=True)
    pending_reason: str | None = None
    estimated_start: datetime | None = _time(default=None)
    ahead: int | None = None
    lost: datetime | None = _time(default=None)
    node: str | None = None
    address: str | None = None
    port: int | None = None
    started: datetime | None = _time(default=None)
    ready: datetime | None = _time(default=None)
    deadline: datetime | None = _time(default=None)
    restarts: int = 0
    requeued: datetime | None = _time(default=None)
    extending: datetime | None = _time(default=None)
    stop_requested: datetime | None = _time(default=None)
    stopped_by: str | None = None
    ended: datetime | None = _time(default=None)
    cause: str | None = None
    end_text: str | None = None
    end_log: str = ""
    exit_code: int | None = None
    cleaned: bool = Field(default=False, index=True)
    usage_at: datetime | None = _time(default=None)
    cpu_seconds: float | None = None
    cpu_percent: float | None = None
    memory_used: int | None = Field(default=None, sa_type=BigInteger)
    oom_kills: int = 0
    gpu_memory_used: int | None = Field(default=None, sa_type=BigInteger)
    gpu_percent: float | None = None
    gpu_kills: int = 0
    apps: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    last_used: datetime | None = _time(default=None)
    log_read: datetime | None = _time(default=None)
    log_read_by: str | None = None


class SessionEnvRow(SQLModel, table=True):
    """Environment variables of a session, as JSON; apart, since no list or page needs them."""

    __tablename__ = "session_env"

    session: str = Field(primary_key=True)
    variables: str


class LaunchKeyRow(SQLModel, table=True):
    """An Idempotency-Key that was used, and for what; `session` is the first of its batch."""

    __tablename__ = "launch_key"

    owner: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    session: str
    fingerprint: str


class AppRow(SQLModel, table=True):
    """An app that was opened in a session."""

    __tablename__ = "app"
    __table_args__ = (UniqueConstraint("label"),)

    session: str = Field(primary_key=True)
    app: str = Field(primary_key=True)
    label: str
    state: str
    message: str = ""
    log: str = ""
    public_since: datetime | None = _time(default=None)
    asked: str = ""
    details: str = ""
    shut: bool = False
    moved: datetime | None = _time(default=None)


class OriginRow(SQLModel, table=True):
    """An origin that may be used again; the fields are those of core.origins.Origin and Use."""

    __tablename__ = "origin"
    __table_args__ = (Index("origin_use", "owner", "environment", "version", "app"),)

    label: str = Field(primary_key=True)
    is_port: bool = Field(index=True)
    owner: str
    environment: str
    version: str
    app: str
    kept: bool
    shared: bool
    mark: str
    used: datetime = _time()


class ShuttingRow(SQLModel, table=True):
    """A key that was taken away and of which HAProxy has not said yet that it is gone."""

    __tablename__ = "shutting"

    key: str = Field(primary_key=True)
    session: str = Field(index=True)
    app: str
    since: datetime = _time()


class ImageAppsRow(SQLModel, table=True):
    """The apps that sessions found in an image."""

    __tablename__ = "image_apps"

    environment: str = Field(primary_key=True)
    version: str = Field(primary_key=True)
    apps: tuple[str, ...] = Field(default=(), sa_type=WordTuple)


class TicketRow(SQLModel, table=True):
    """A one-time ticket that was not used yet."""

    __tablename__ = "ticket"

    hash: str = Field(primary_key=True)
    label: str
    session: str = Field(index=True)
    app: str
    user: str
    login: str
    expires: datetime = _time()


class GrantRow(SQLModel, table=True):
    """A browser that may use an app."""

    __tablename__ = "grant"

    cookie_hash: str = Field(primary_key=True)
    label: str
    session: str = Field(index=True)
    app: str
    user: str
    login: str = Field(index=True)
    created: datetime = _time()


class LoginRow(SQLModel, table=True):
    """A browser's login or an API token; fields as in core.logins.Login, and `revoked`."""

    __tablename__ = "login"

    hash: str = Field(primary_key=True)
    id: str = Field(unique=True, index=True)
    kind: str
    user: str = Field(index=True)
    name: str = ""
    scopes: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    created: datetime = _time()
    used: datetime = _time()
    expires: datetime = _time()
    address: str = ""
    revoked: datetime | None = _time(default=None, index=True)


class AccountRow(SQLModel, table=True):
    """What was last seen of an account's password on the login node."""

    __tablename__ = "account"

    user: str = Field(primary_key=True)
    password: str


class AttemptRow(SQLModel, table=True):
    """Until when tries at a password are used up, in milliseconds since 1970."""

    __tablename__ = "attempt"

    key: str = Field(primary_key=True)
    until: int = Field(sa_type=BigInteger)


class KnownNetworkRow(SQLModel, table=True):
    """A network that an account has logged in from; `seen` in milliseconds since 1970."""

    __tablename__ = "known_network"

    user: str = Field(primary_key=True)
    network: str = Field(primary_key=True)
    seen: int = Field(sa_type=BigInteger)


class RefusalRow(SQLModel, table=True):
    """Wrong passwords; the fields are those of core.logins.Refusals."""

    __tablename__ = "refusal"

    network: str = Field(primary_key=True)
    hour: int = Field(primary_key=True)
    user: str = Field(primary_key=True)
    count: int


class ClusterRow(SQLModel, table=True):
    """What the worker last learnt of Slurm; one row."""

    __tablename__ = "cluster"

    id: int = Field(default=1, primary_key=True)
    answered: datetime | None = _time(default=None)
    failing_since: datetime | None = _time(default=None)
    message: str = ""
    partitions: str = "[]"
    limits: str = ""
    use: str = ""
    measured: str = ""


class PresetRow(SQLModel, table=True):
    """What somebody launches again and again: a launch's request as JSON, values and all."""

    __tablename__ = "preset"

    owner: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    request: str
    saved: datetime = _time()


class TemplateRow(SQLModel, table=True):
    """A resource template; the fields are those of core.administration.Template."""

    __tablename__ = "template"

    name: str = Field(primary_key=True)
    title: str
    description: str = ""
    cpus: int
    memory_mb: int
    shared_memory_mb: int | None = None
    fgpu: float | None = None
    gpu_kind: str | None = None
    time_limit: int | None = None
    resource_group: str | None = None
    place: int = 0


class ImageRuleRow(SQLModel, table=True):
    """Who sees an image; the fields are those of core.administration.ImageRule."""

    __tablename__ = "image_rule"

    environment: str = Field(primary_key=True)
    version: str = Field(primary_key=True)
    seen_by: str
    accounts: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    users: tuple[str, ...] = Field(default=(), sa_type=WordTuple)


class SiteRuleRow(SQLModel, table=True):
    """One cap of core.administration.SiteRules, as JSON."""

    __tablename__ = "site_rule"

    name: str = Field(primary_key=True)
    value: str


class JournalRow(SQLModel, table=True):
    """One line of the journal; the fields are those of core.administration.Entry."""

    __tablename__ = "journal"
    __table_args__ = (Index("journal_who", "who", "id"),)

    id: int | None = Field(default=None, primary_key=True)
    time: datetime = _time(index=True)
    who: str
    action: str
    target: str = ""
    detail: str = ""
    address: str = ""
