"""Slurm's jobs, for the Jobs page."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_TIME = sa.DateTime(timezone=True)
_INDICES = {
    "job_newest": "owner all_head submitted number",
    "job_newest_of_all": "all_head submitted number",
    "job_tab": "owner tab tab_head submitted number",
    "job_tab_of_all": "tab tab_head submitted number",
    "job_ended_of_all": "tab tab_head ended number",
    "job_started_of_all": "tab tab_head started number",
    "job_name_of_all": "tab tab_head name_key number",
    "job_owner_of_all": "tab tab_head owner number",
    "job_cpus_of_all": "tab tab_head cpus number",
    "job_memory_of_all": "tab tab_head memory_mb number",
    "job_queue": "tab partition place submitted number reason",
    "job_array": "array_id tab state number tab_head all_head",
    "job_het": "het_id het_offset",
    "job_to_ask": "ask_at",
    "job_without_texts": "texted tab number",
    "job_of_session": "session number",
}


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "job",
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("tab", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("nodes", sa.String(), nullable=False),
        sa.Column("submitted", _TIME, nullable=False),
        sa.Column("started", _TIME, nullable=False),
        sa.Column("ended", _TIME, nullable=False),
        sa.Column("deadline", _TIME, nullable=True),
        sa.Column("time_limit", sa.Integer(), nullable=True),
        sa.Column("restarts", sa.Integer(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("signal", sa.Integer(), nullable=True),
        sa.Column("partition", sa.String(), nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("qos", sa.String(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.BigInteger(), nullable=False),
        sa.Column("shards", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("cancelled_by", sa.String(), nullable=True),
        sa.Column("array_id", sa.BigInteger(), nullable=True),
        sa.Column("tasks", sa.String(), nullable=False),
        sa.Column("het_id", sa.BigInteger(), nullable=True),
        sa.Column("het_offset", sa.Integer(), nullable=False),
        sa.Column("tab_head", sa.Boolean(), nullable=False),
        sa.Column("all_head", sa.Boolean(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("name_key", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=True),
        sa.Column("texted", sa.Boolean(), nullable=False),
        sa.Column("left", _TIME, nullable=True),
        sa.Column("gone", _TIME, nullable=True),
        sa.Column("ask_at", _TIME, nullable=True),
        sa.Column("extending", _TIME, nullable=True),
    )
    for name, columns in _INDICES.items():
        op.create_index(name, "job", columns.split())
    op.create_table(
        "job_text",
        sa.Column("number", sa.BigInteger(), primary_key=True, autoincrement=False),
        *(
            sa.Column(name, sa.String(), nullable=False)
            for name in ("directory", "command", "stdout", "stderr", "dependency")
        ),
    )
    op.create_table(
        "job_history",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("known_until", _TIME, nullable=True),
    )
