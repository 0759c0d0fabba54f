"""Slurm's jobs, job templates, and jobs that were submitted through the portal."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Index, func, literal_column
from sqlmodel import Field, SQLModel

from portal.core.jobs.compose.drafts import Shared
from portal.store.tables.columns import WordTuple, time_column


class JobRow(SQLModel, table=True):
    """One record of Slurm; fields as in core.jobs.job.Job, and keys for lists and the follower."""

    __tablename__ = "job"

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


# Most rows are jobs that have ended: they are in the indexes of times only, and all others are
# partial. A database uses a partial index if a query repeats its condition, without parameters.

JOBS = SQLModel.metadata.tables["job"]
_C = JOBS.c
IS_LIVE = _C.tab != literal_column("'ended'")
IS_OVER = _C.tab == literal_column("'ended'")
IS_PENDING = _C.tab == literal_column("'pending'")
IS_HEAD, IS_TASK = _C.tab_head.is_(True), _C.tab_head.is_(False)
IS_HEAD_OF_ALL = _C.all_head.is_(True)
LACKS_TEXTS = _C.texted.is_(False) & _C.left.is_(None)
"""Of jobs in the queue."""
LIKE_A_SESSION = (
    IS_LIVE
    & _C.left.is_(None)
    & _C.session.is_(None)
    & _C.array_id.is_(None)
    & _C.het_id.is_(None)
    & (func.length(_C.name) == literal_column("32"))
)
"""Jobs whose name may be a session's id, without a session."""


def _index(name: str, *columns: str, where: ColumnElement[Any]) -> None:
    keys = (_C[column] for column in columns)
    Index(name, *keys, sqlite_where=where, postgresql_where=where)


_index("job_newest", "owner", "submitted", "number", where=IS_HEAD_OF_ALL)
_index("job_newest_of_all", "submitted", "number", where=IS_HEAD_OF_ALL)
_index("job_tab", "owner", "tab", "submitted", "number", where=IS_HEAD)
_index("job_over", "submitted", "number", where=IS_OVER & IS_HEAD)
_index("job_ended_of_all", "ended", "number", where=IS_OVER & IS_HEAD)
_index("job_tasks_over", "state", "ended", "number", where=IS_OVER & IS_TASK)
for _key in (
    "submitted", "ended", "started", "name_key", "owner", "status_key", "partition", "time_limit",
    "priority", "cpus", "memory_mb",
):  # fmt: skip
    _index(f"job_live_{_key}", "tab", _key, "number", where=IS_LIVE & IS_HEAD)
_index("job_live", "owner", "tab", where=IS_LIVE)
_index("job_queue", "partition", "place", "submitted", "number", "reason", where=IS_PENDING)
_index("job_like_a_session", "number", where=LIKE_A_SESSION)
_index("job_array", "array_id", "tab", "state", "number", where=_C.array_id.is_not(None))
_index("job_array_head", "array_id", where=_C.array_id.is_not(None) & IS_HEAD)
_index("job_het", "het_id", "het_offset", where=_C.het_id.is_not(None))
_index("job_to_ask", "ask_at", where=_C.ask_at.is_not(None))
_index("job_gone", "gone", where=_C.gone.is_not(None))
_index("job_without_texts", "number", where=LACKS_TEXTS)


class CountedTasksRow(SQLModel, table=True):
    """Tasks of an array that ended in one state and have no rows any more."""

    __tablename__ = "job_counted"

    array_id: int = Field(
        sa_type=BigInteger, primary_key=True, sa_column_kwargs={"autoincrement": False}
    )
    state: str = Field(primary_key=True)
    number: int


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
