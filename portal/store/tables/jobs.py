"""Slurm's jobs, job templates, and jobs that were submitted through the portal."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlmodel import Field, SQLModel

from portal.core.jobs.compose.drafts import Shared
from portal.store.tables.columns import WordTuple, time_column


class JobRow(SQLModel, table=True):
    """One record of Slurm; fields as in core.jobs.job.Job, and keys for lists and the follower."""

    __tablename__ = "job"
    __table_args__ = (
        Index("job_newest", "owner", "all_head", "submitted", "number"),
        Index("job_newest_of_all", "all_head", "submitted", "number"),
        Index("job_tab", "owner", "tab", "tab_head", "submitted", "number"),
        Index("job_tab_of_all", "tab", "tab_head", "submitted", "number"),
        Index("job_ended_of_all", "tab", "tab_head", "ended", "number"),
        Index("job_started_of_all", "tab", "tab_head", "started", "number"),
        Index("job_name_of_all", "tab", "tab_head", "name_key", "number"),
        Index("job_owner_of_all", "tab", "tab_head", "owner", "number"),
        Index("job_status_of_all", "tab", "tab_head", "status_key", "number"),
        Index("job_partition_of_all", "tab", "tab_head", "partition", "number"),
        Index("job_limit_of_all", "tab", "tab_head", "time_limit", "number"),
        Index("job_priority_of_all", "tab", "tab_head", "priority", "number"),
        Index("job_cpus_of_all", "tab", "tab_head", "cpus", "number"),
        Index("job_memory_of_all", "tab", "tab_head", "memory_mb", "number"),
        Index("job_queue", "tab", "partition", "place", "submitted", "number", "reason"),
        Index("job_array", "array_id", "tab", "state", "number", "tab_head", "all_head"),
        Index("job_het", "het_id", "het_offset"),
        Index("job_to_ask", "ask_at"),
        Index("job_without_texts", "texted", "tab", "number"),
        Index("job_of_session", "session", "number"),
    )

    number: int = Field(
        sa_type=BigInteger, primary_key=True, sa_column_kwargs={"autoincrement": False}
    )
    owner: str
    state: str
    tab: str
    status_key: str = ""
    """Sort key of the status: the state, and the reason of pending jobs."""
    reason: str | None = None
    nodes: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    submitted: datetime = time_column()
    started: datetime = time_column()
    """The start or its estimate; far in the future if there is none, for sorting."""
    ended: datetime = time_column()
    """Far in the future while it has not ended, for sorting."""
    deadline: datetime | None = time_column(default=None)
    time_limit: int
    """Minutes; NO_LIMIT if there is none, for sorting."""
    restarts: int = 0
    exit_code: int | None = None
    signal: int | None = None
    partition: str = ""
    priority: int = Field(default=0, sa_type=BigInteger)
    place: int = Field(default=0, sa_type=BigInteger)
    """The negative priority: first part of the sort key of the queue."""
    account: str = ""
    qos: str = ""
    cpus: int = 0
    memory_mb: int = Field(default=0, sa_type=BigInteger)
    shards: int = 0
    gpus: int = 0
    cancelled_by: str | None = None
    array_id: int | None = Field(default=None, sa_type=BigInteger)
    tasks: str = ""
    het_id: int | None = Field(default=None, sa_type=BigInteger)
    het_offset: int = 0
    tab_head: bool = True
    """Whether lists of its tab show this row: of an array's tasks there, only the head."""
    all_head: bool = True
    """Whether the list of all tabs shows it: of an array, only the head."""
    name: str = ""
    name_key: str = ""
    session: str | None = None
    texted: bool = False
    """Whether its texts are stored."""
    left: datetime | None = time_column(default=None)
    """When it left the queue."""
    gone: datetime | None = time_column(default=None)
    ask_at: datetime | None = time_column(default=None)
    """When accounting is queried for its end next; None: never."""
    stopped_by: str | None = None
    """The user who cancelled it in the portal; accounting may name the portal's account."""
    extending: datetime | None = time_column(default=None)


class JobTextRow(SQLModel, table=True):
    """A job's texts except for its name; separate, since lists are not sorted by them."""

    __tablename__ = "job_text"

    number: int = Field(
        sa_type=BigInteger, primary_key=True, sa_column_kwargs={"autoincrement": False}
    )
    directory: str = ""
    command: str = ""
    stdout: str = ""
    """A path with Slurm's patterns."""
    stderr: str = ""
    """A path with Slurm's patterns."""
    dependency: str = ""


class JobHistoryRow(SQLModel, table=True):
    """The time up to which all ended jobs were read from accounting; one row."""

    __tablename__ = "job_history"

    id: int = Field(default=1, primary_key=True)
    known_until: datetime | None = time_column(default=None)


class JobUsageRow(SQLModel, table=True):
    """A job's usage as last read from Slurm, as JSON; "" if Slurm did not have it."""

    __tablename__ = "job_usage"

    job: str = Field(primary_key=True)
    asked: datetime = time_column(index=True)
    usage: str = ""


class JobReadingRow(SQLModel, table=True):
    """The last reading of a job's output by an administrator."""

    __tablename__ = "job_reading"

    job: str = Field(primary_key=True)
    by: str
    at: datetime = time_column(index=True)


class JobTemplateRow(SQLModel, table=True):
    """A job template; the script has its own column, since lists do not need it."""

    __tablename__ = "job_template"
    __table_args__ = (Index("job_template_shared", "shared", "account"),)

    owner: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    request: str
    script: str | None = None
    shared: str = Shared.NOBODY
    account: str = ""
    saved: datetime = time_column()


class SubmissionRow(SQLModel, table=True):
    """A request to submit a job; fields as in core.jobs.compose.drafts.Submission."""

    __tablename__ = "job_submission"
    __table_args__ = (
        Index("job_submission_job", "owner", "job_id"),
        Index("job_submission_newest", "owner", "created"),
    )

    owner: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    fingerprint: str
    job_id: str = ""
    request: str | None = None
    """As JSON, with the script; None once it is deleted."""
    created: datetime = time_column()
