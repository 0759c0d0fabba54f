"""The schema of release 0.2.0, as its migrations 0001 to 0020 created it.

The server's defaults are those of columns that were added to existing rows.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = None

_SCHEMA = sa.MetaData()


def upgrade() -> None:
    """Apply."""
    _SCHEMA.create_all(op.get_bind(), checkfirst=False)


def _column(name: str, kind: sa.types.TypeEngine[Any], options: dict[str, Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, **{"nullable": False} | options)


def _text(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.String(), options)


def _number(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.Integer(), options)


def _big(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.BigInteger(), options)


def _real(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.Float(), options)


def _flag(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.Boolean(), options)


def _time(name: str, **options: Any) -> sa.Column[Any]:
    return _column(name, sa.DateTime(timezone=True), options)


sa.Table(
    "account",
    _SCHEMA,
    _text("user", primary_key=True),
    _text("password"),
)

sa.Table(
    "app",
    _SCHEMA,
    _text("session", primary_key=True),
    _text("app", primary_key=True),
    _text("label"),
    _text("state"),
    _text("message"),
    _text("log"),
    _time("public_since", nullable=True),
    _text("asked", server_default=""),
    _text("details", server_default=""),
    _flag("shut", server_default=sa.false()),
    _time("moved", nullable=True),
    _text("title", server_default=""),
    sa.UniqueConstraint("label"),
)

sa.Table(
    "attempt",
    _SCHEMA,
    _text("key", primary_key=True),
    _big("until"),
)

sa.Table(
    "cluster",
    _SCHEMA,
    _number("id", primary_key=True),
    _time("answered", nullable=True),
    _time("failing_since", nullable=True),
    _text("message"),
    _text("partitions"),
    _text("limits", server_default=""),
    _text("use", server_default=""),
    _text("measured", server_default=""),
)

sa.Table(
    "cluster_nodes",
    _SCHEMA,
    _number("id", primary_key=True),
    _text("nodes"),
)

sa.Table(
    "ended_app",
    _SCHEMA,
    _text("label", primary_key=True),
    _text("session"),
    _text("app"),
    _time("ended"),
    sa.Index("ix_ended_app_ended", "ended"),
)

sa.Table(
    "file_server",
    _SCHEMA,
    _text("owner", primary_key=True),
    _text("id"),
    _text("address"),
    _number("port"),
    _time("started", nullable=True),
    _time("starting", nullable=True),
    _time("cleaned", nullable=True),
)

sa.Table(
    "folder_share",
    _SCHEMA,
    _text("owner", primary_key=True),
    _text("folder", primary_key=True),
    _text("kind", primary_key=True),
    _text("name", primary_key=True),
    _text("access"),
    _text("state"),
    _time("created"),
    sa.Index("ix_folder_share_with", "kind", "name"),
)

sa.Table(
    "grant",
    _SCHEMA,
    _text("cookie_hash", primary_key=True),
    _text("label"),
    _text("session"),
    _text("app"),
    _text("user"),
    _text("login"),
    _time("created"),
    sa.Index("ix_grant_login", "login"),
    sa.Index("ix_grant_session", "session"),
)

sa.Table(
    "image_apps",
    _SCHEMA,
    _text("environment", primary_key=True),
    _text("version", primary_key=True),
    _text("apps", server_default=""),
)

sa.Table(
    "image_rule",
    _SCHEMA,
    _text("environment", primary_key=True),
    _text("version", primary_key=True),
    _text("seen_by"),
    _text("accounts", server_default=""),
    _text("users", server_default=""),
)

sa.Table(
    "job",
    _SCHEMA,
    _big("number", primary_key=True, autoincrement=False),
    _text("owner"),
    _text("state"),
    _text("tab"),
    _text("status_key"),
    _text("nodes"),
    _text("partition"),
    _text("account"),
    _text("qos"),
    _text("tasks"),
    _text("name"),
    _text("name_key"),
    _text("reason", nullable=True),
    _text("cancelled_by", nullable=True),
    _text("session", nullable=True),
    _text("stopped_by", nullable=True),
    _time("submitted"),
    _time("started"),
    _time("ended"),
    _time("deadline", nullable=True),
    _time("left", nullable=True),
    _time("gone", nullable=True),
    _time("ask_at", nullable=True),
    _time("extending", nullable=True),
    _number("time_limit"),
    _number("restarts"),
    _number("cpus"),
    _number("shards"),
    _number("gpus"),
    _number("het_offset"),
    _number("exit_code", nullable=True),
    _number("signal", nullable=True),
    _big("priority"),
    _big("place"),
    _big("memory_mb"),
    _big("array_id", nullable=True),
    _big("het_id", nullable=True),
    _flag("tab_head"),
    _flag("all_head"),
    _flag("texted"),
    sa.Index("job_array", "array_id", "tab", "state", "number", "tab_head", "all_head"),
    sa.Index("job_cpus_of_all", "tab", "tab_head", "cpus", "number"),
    sa.Index("job_ended_of_all", "tab", "tab_head", "ended", "number"),
    sa.Index("job_het", "het_id", "het_offset"),
    sa.Index("job_limit_of_all", "tab", "tab_head", "time_limit", "number"),
    sa.Index("job_memory_of_all", "tab", "tab_head", "memory_mb", "number"),
    sa.Index("job_name_of_all", "tab", "tab_head", "name_key", "number"),
    sa.Index("job_newest", "owner", "all_head", "submitted", "number"),
    sa.Index("job_newest_of_all", "all_head", "submitted", "number"),
    sa.Index("job_of_session", "session", "number"),
    sa.Index("job_owner_of_all", "tab", "tab_head", "owner", "number"),
    sa.Index("job_partition_of_all", "tab", "tab_head", "partition", "number"),
    sa.Index("job_priority_of_all", "tab", "tab_head", "priority", "number"),
    sa.Index("job_queue", "tab", "partition", "place", "submitted", "number", "reason"),
    sa.Index("job_started_of_all", "tab", "tab_head", "started", "number"),
    sa.Index("job_status_of_all", "tab", "tab_head", "status_key", "number"),
    sa.Index("job_tab", "owner", "tab", "tab_head", "submitted", "number"),
    sa.Index("job_tab_of_all", "tab", "tab_head", "submitted", "number"),
    sa.Index("job_to_ask", "ask_at"),
    sa.Index("job_without_texts", "texted", "tab", "number"),
)

sa.Table(
    "job_history",
    _SCHEMA,
    _number("id", primary_key=True),
    _time("known_until", nullable=True),
)

sa.Table(
    "job_reading",
    _SCHEMA,
    _text("job", primary_key=True),
    _text("by"),
    _time("at"),
    sa.Index("ix_job_reading_at", "at"),
)

sa.Table(
    "job_submission",
    _SCHEMA,
    _text("owner", primary_key=True),
    _text("key", primary_key=True),
    _text("fingerprint"),
    _text("job_id"),
    _text("request", nullable=True),
    _time("created"),
    sa.Index("job_submission_job", "owner", "job_id"),
    sa.Index("job_submission_newest", "owner", "created"),
)

sa.Table(
    "job_template",
    _SCHEMA,
    _text("owner", primary_key=True),
    _text("name", primary_key=True),
    _text("request"),
    _text("script", nullable=True),
    _text("shared"),
    _text("account"),
    _time("saved"),
    sa.Index("job_template_shared", "shared", "account"),
)

sa.Table(
    "job_text",
    _SCHEMA,
    _big("number", primary_key=True, autoincrement=False),
    _text("directory"),
    _text("command"),
    _text("stdout"),
    _text("stderr"),
    _text("dependency"),
)

sa.Table(
    "job_usage",
    _SCHEMA,
    _text("job", primary_key=True),
    _time("asked"),
    _text("usage"),
    sa.Index("ix_job_usage_asked", "asked"),
)

sa.Table(
    "journal",
    _SCHEMA,
    _number("id", primary_key=True),
    _time("time"),
    _text("who"),
    _text("action"),
    _text("target", server_default=""),
    _text("detail", server_default=""),
    _text("address", server_default=""),
    sa.Index("ix_journal_time", "time"),
    sa.Index("journal_target", "target", "id"),
    sa.Index("journal_who", "who", "id"),
)

sa.Table(
    "known_network",
    _SCHEMA,
    _text("user", primary_key=True),
    _text("network", primary_key=True),
    _big("seen"),
)

sa.Table(
    "launch_key",
    _SCHEMA,
    _text("owner", primary_key=True),
    _text("key", primary_key=True),
    _text("session"),
    _text("fingerprint"),
)

sa.Table(
    "login",
    _SCHEMA,
    _text("hash", primary_key=True),
    _text("kind"),
    _text("user"),
    _text("scopes"),
    _time("expires"),
    _text("id"),
    _text("name", server_default=""),
    _text("address", server_default=""),
    _time("created"),
    _time("used"),
    _time("revoked", nullable=True),
    sa.Index("ix_login_id", "id", unique=True),
    sa.Index("ix_login_revoked", "revoked"),
    sa.Index("ix_login_user", "user"),
)

sa.Table(
    "origin",
    _SCHEMA,
    _text("label", primary_key=True),
    _flag("is_port"),
    _text("owner"),
    _text("environment"),
    _text("version"),
    _text("app"),
    _flag("kept"),
    _flag("shared"),
    _text("mark"),
    _time("used"),
    sa.Index("ix_origin_is_port", "is_port"),
    sa.Index("origin_use", "owner", "environment", "version", "app"),
)

sa.Table(
    "preset",
    _SCHEMA,
    _text("owner", primary_key=True),
    _text("name", primary_key=True),
    _text("request"),
    _time("saved"),
)

sa.Table(
    "refusal",
    _SCHEMA,
    _text("network", primary_key=True),
    _number("hour", primary_key=True),
    _text("user", primary_key=True),
    _number("count"),
)

sa.Table(
    "registry_login",
    _SCHEMA,
    _text("owner", primary_key=True),
    _text("host", primary_key=True),
    _text("user"),
    _text("secret"),
    _time("added", nullable=True),
    _time("used", nullable=True),
)

sa.Table(
    "service_token",
    _SCHEMA,
    _text("hash", primary_key=True),
    _text("id"),
    _text("name"),
    _text("users"),
    sa.Column("groups", sa.JSON(), nullable=False),
    _time("created"),
    _time("used", nullable=True),
    _time("expires"),
    sa.Index("ix_service_token_id", "id", unique=True),
)

sa.Table(
    "service_use",
    _SCHEMA,
    _text("token", primary_key=True),
    _text("user", primary_key=True),
    _time("used"),
)

sa.Table(
    "session",
    _SCHEMA,
    _text("id", primary_key=True),
    _text("name"),
    _text("owner"),
    _text("environment"),
    _text("version"),
    _number("cpus"),
    _number("memory_mb"),
    _text("partition", nullable=True),
    _number("time_limit", nullable=True),
    _text("state"),
    _time("created"),
    _text("token_hash"),
    _time("submitted"),
    _number("attempts"),
    _text("job_id", nullable=True),
    _text("pending_reason", nullable=True),
    _time("estimated_start", nullable=True),
    _text("node", nullable=True),
    _text("address", nullable=True),
    _number("port", nullable=True),
    _time("started", nullable=True),
    _time("ready", nullable=True),
    _time("stop_requested", nullable=True),
    _text("stopped_by", nullable=True),
    _time("ended", nullable=True),
    _text("cause", nullable=True),
    _text("end_text", nullable=True),
    _number("exit_code", nullable=True),
    _flag("cleaned"),
    _time("usage_at", nullable=True),
    _real("cpu_seconds", nullable=True),
    _real("cpu_percent", nullable=True),
    _big("memory_used", nullable=True),
    _number("oom_kills"),
    _number("ahead", nullable=True),
    _time("lost", nullable=True),
    _text("batch", nullable=True),
    _number("shared_memory_mb", nullable=True),
    _text("env_names", server_default=""),
    _text("mounts", server_default="[]"),
    _number("shared_memory_cap_mb", nullable=True),
    _text("end_log", server_default=""),
    _time("deadline", nullable=True),
    _number("restarts", server_default="0"),
    _time("requeued", nullable=True),
    _text("apps", server_default=""),
    _time("last_used", nullable=True),
    _real("fgpu", nullable=True),
    _text("gpu_kind", server_default=""),
    _text("gres", server_default=""),
    _number("gpu_memory_mb", nullable=True),
    _number("gpu_sm_percent", nullable=True),
    _big("gpu_memory_used", nullable=True),
    _real("gpu_percent", nullable=True),
    _number("gpu_kills", server_default="0"),
    _time("extending", nullable=True),
    _time("log_read", nullable=True),
    _text("log_read_by", nullable=True),
    _flag("named", server_default=sa.false()),
    _text("home", server_default="session"),
    _text("oom_program", server_default=""),
    _text("stop_reason", server_default=""),
    _time("end_seen", nullable=True),
    _time("oom_at", nullable=True),
    _time("oom_seen", nullable=True),
    _number("home_files", nullable=True),
    _big("memory_peak", nullable=True),
    _big("home_bytes", nullable=True),
    _text("preset", server_default=""),
    _text("hub_prefix", server_default=""),
    _text("image", server_default=""),
    _text("progress", server_default=""),
    _time("progress_at", nullable=True),
    _text("account", server_default=""),
    _text("qos", server_default=""),
    _text("reservation", server_default=""),
    _text("constraint", server_default=""),
    _flag("exclusive", server_default=sa.false()),
    sa.Index("ix_session_batch", "batch"),
    sa.Index("ix_session_cleaned", "cleaned"),
    sa.Index("ix_session_job_id", "job_id"),
    sa.Index(
        "session_hub",
        "hub_prefix",
        unique=True,
        sqlite_where=sa.text("hub_prefix <> '' AND state NOT IN ('FINISHED', 'FAILED')"),
        postgresql_where=sa.text("hub_prefix <> '' AND state NOT IN ('FINISHED', 'FAILED')"),
    ),
    sa.Index("session_newest", "owner", "created", "id", "state"),
    sa.Index("session_newest_of_all", "created", "id"),
    sa.Index("session_tab", "owner", "state", "created", "id"),
    sa.Index("session_tab_of_all", "state", "created", "id"),
    sa.Index("session_unseen", "owner", "end_seen", "ended"),
)

sa.Table(
    "session_env",
    _SCHEMA,
    _text("session", primary_key=True),
    _text("variables"),
    _text("hub", server_default=""),
)

sa.Table(
    "session_sample",
    _SCHEMA,
    _text("session", primary_key=True),
    _time("at", primary_key=True),
    _number("seconds"),
    _time("until"),
    _number("reports"),
    _real("cpu_seconds"),
    _big("memory"),
    _real("gpu_percent", nullable=True),
    _big("gpu_memory", nullable=True),
)

sa.Table(
    "shutting",
    _SCHEMA,
    _text("key", primary_key=True),
    _text("session"),
    _text("app"),
    _time("since"),
    sa.Index("ix_shutting_session", "session"),
)

sa.Table(
    "site_rule",
    _SCHEMA,
    _text("name", primary_key=True),
    _text("value"),
)

sa.Table(
    "template",
    _SCHEMA,
    _text("name", primary_key=True),
    _text("title"),
    _text("description", server_default=""),
    _number("cpus"),
    _number("memory_mb"),
    _number("shared_memory_mb", nullable=True),
    _number("time_limit", nullable=True),
    _text("resource_group", nullable=True),
    _number("place", server_default="0"),
    _real("fgpu", nullable=True),
    _text("gpu_kind", nullable=True),
    _text("account", nullable=True),
    _text("qos", nullable=True),
    _text("reservation", nullable=True),
    _text("constraint", nullable=True),
    _flag("exclusive", server_default=sa.false()),
)

sa.Table(
    "ticket",
    _SCHEMA,
    _text("hash", primary_key=True),
    _text("label"),
    _text("user"),
    _text("login"),
    _time("expires"),
    _text("session"),
    _text("app"),
    sa.Index("ix_ticket_session", "session"),
)
