"""Slurm's jobs, for the Jobs page."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

_TIME = sa.DateTime(timezone=True)
_COLUMNS = {
    "text": "owner state tab nodes partition account qos tasks name name_key",
    "text?": "reason cancelled_by session stopped_by",
    "time": "submitted started ended",
    "time?": "deadline left gone ask_at extending",
    "number?": "time_limit exit_code signal",
    "number": "restarts cpus shards gpus het_offset",
    "big": "priority place memory_mb",
    "big?": "array_id het_id",
    "flag": "tab_head all_head texted",
}
"""Names of columns by type; a question mark for those that may be null."""
_TYPES: dict[str, sa.types.TypeEngine[Any]] = {
    "text": sa.String(),
    "number": sa.Integer(),
    "big": sa.BigInteger(),
    "flag": sa.Boolean(),
    "time": _TIME,
}
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
        *(
            sa.Column(name, _TYPES[kind.rstrip("?")], nullable=kind.endswith("?"))
            for kind, names in _COLUMNS.items()
            for name in names.split()
        ),
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
