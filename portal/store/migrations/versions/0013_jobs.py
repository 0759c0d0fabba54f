"""Batch jobs: Slurm's jobs for the Jobs page, submissions, job templates, use and readings."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_TYPES: dict[str, sa.types.TypeEngine[Any]] = {
    "text": sa.String(),
    "number": sa.Integer(),
    "big": sa.BigInteger(),
    "flag": sa.Boolean(),
    "time": sa.DateTime(timezone=True),
}
_TABLES = {
    "job": (
        "number:big!",
        "owner:text state:text tab:text status_key:text nodes:text partition:text account:text",
        "qos:text tasks:text name:text name_key:text",
        "reason:text? cancelled_by:text? session:text? stopped_by:text?",
        "submitted:time started:time ended:time",
        "deadline:time? left:time? gone:time? ask_at:time? extending:time?",
        "time_limit:number restarts:number cpus:number shards:number gpus:number het_offset:number",
        "exit_code:number? signal:number?",
        "priority:big place:big memory_mb:big array_id:big? het_id:big?",
        "tab_head:flag all_head:flag texted:flag",
    ),
    "job_text": (
        "number:big!",
        "directory:text command:text stdout:text stderr:text dependency:text",
    ),
    "job_history": ("id:number!", "known_until:time?"),
    "job_template": (
        "owner:text! name:text!",
        "request:text script:text? shared:text account:text saved:time",
    ),
    "job_submission": (
        "owner:text! key:text!",
        "fingerprint:text job_id:text request:text? created:time",
    ),
    "job_usage": ("job:text!", "asked:time usage:text"),
    "job_reading": ("job:text!", "by:text at:time"),
}
"""The columns of each table as NAME:TYPE; "!": primary key, "?": may be null."""
_INDICES = {
    "job": {
        "job_newest": "owner all_head submitted number",
        "job_newest_of_all": "all_head submitted number",
        "job_tab": "owner tab tab_head submitted number",
        "job_tab_of_all": "tab tab_head submitted number",
        "job_ended_of_all": "tab tab_head ended number",
        "job_started_of_all": "tab tab_head started number",
        "job_name_of_all": "tab tab_head name_key number",
        "job_owner_of_all": "tab tab_head owner number",
        "job_status_of_all": "tab tab_head status_key number",
        "job_partition_of_all": "tab tab_head partition number",
        "job_limit_of_all": "tab tab_head time_limit number",
        "job_priority_of_all": "tab tab_head priority number",
        "job_cpus_of_all": "tab tab_head cpus number",
        "job_memory_of_all": "tab tab_head memory_mb number",
        "job_queue": "tab partition place submitted number reason",
        "job_array": "array_id tab state number tab_head all_head",
        "job_het": "het_id het_offset",
        "job_to_ask": "ask_at",
        "job_without_texts": "texted tab number",
        "job_of_session": "session number",
    },
    "job_template": {"job_template_shared": "shared account"},
    "job_submission": {
        "job_submission_job": "owner job_id",
        "job_submission_newest": "owner created",
    },
    "job_usage": {"ix_job_usage_asked": "asked"},
    "job_reading": {"ix_job_reading_at": "at"},
}


def upgrade() -> None:
    """Apply."""
    for table, lines in _TABLES.items():
        op.create_table(table, *map(_column, " ".join(lines).split()))
    for table, indices in _INDICES.items():
        for name, columns in indices.items():
            op.create_index(name, table, columns.split())


def _column(text: str) -> sa.Column[Any]:
    name, _, kind = text.partition(":")
    return sa.Column(
        name,
        _TYPES[kind.rstrip("!?")],
        primary_key=kind.endswith("!"),
        nullable=kind.endswith("?"),
        autoincrement=False if kind == "big!" else "auto",
    )
