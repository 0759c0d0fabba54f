"""Slurm's jobs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, Index
from sqlmodel import Field, SQLModel

from portal.store.tables.columns import WordTuple, time_column


class JobRow(SQLModel, table=True):
    """One record of Slurm's; fields as in core.jobs.job.Job, and what lists and follower need."""

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
    """What lists are sorted by: the state, and the reason of pending jobs."""
    reason: str | None = None
    nodes: tuple[str, ...] = Field(default=(), sa_type=WordTuple)
    submitted: datetime = time_column()
    started: datetime = time_column()
    """The start or its estimate; far in the future if there is none, so that it can be sorted."""
    ended: datetime = time_column()
    """Likewise."""
    deadline: datetime | None = time_column(default=None)
    time_limit: int
    """Minutes; very many if there is none, so that it can be sorted."""
    restarts: int = 0
    exit_code: int | None = None
    signal: int | None = None
    partition: str = ""
    priority: int = Field(default=0, sa_type=BigInteger)
    place: int = Field(default=0, sa_type=BigInteger)
    """Minus the priority: the place in the queue begins with it."""
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
    """Whether lists of its tab show this row: of an array, one for all of its tasks there."""
    all_head: bool = True
    """Likewise for the list of all tabs."""
    name: str = ""
    name_key: str = ""
    session: str | None = None
    texted: bool = False
    """Whether its texts are known."""
    left: datetime | None = time_column(default=None)
    """Since when the queue lacks it."""
    gone: datetime | None = time_column(default=None)
    ask_at: datetime | None = time_column(default=None)
    """When accounting is asked about its end next; None: there is nothing to ask."""
    stopped_by: str | None = None
    """Who cancelled it by the portal; accounting may name the portal's own account."""
    extending: datetime | None = time_column(default=None)


class JobTextRow(SQLModel, table=True):
    """What a job's owner wrote, but for its name; separate, since lists are not sorted by it."""

    __tablename__ = "job_text"

    number: int = Field(
        sa_type=BigInteger, primary_key=True, sa_column_kwargs={"autoincrement": False}
    )
    directory: str = ""
    command: str = ""
    stdout: str = ""
    """A path with Slurm's patterns; the next, too."""
    stderr: str = ""
    dependency: str = ""


class JobHistoryRow(SQLModel, table=True):
    """Until when all jobs are known; one row."""

    __tablename__ = "job_history"

    id: int = Field(default=1, primary_key=True)
    known_until: datetime | None = time_column(default=None)
