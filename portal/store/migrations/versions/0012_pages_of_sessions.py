"""Use over time, the preset of a session, and the audit log's events of one session."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "session_sample",
        sa.Column("session", sa.String(), primary_key=True),
        sa.Column("at", _TIME, primary_key=True),
        sa.Column("seconds", sa.Integer(), nullable=False),
        sa.Column("until", _TIME, nullable=False),
        sa.Column("reports", sa.Integer(), nullable=False),
        sa.Column("cpu_seconds", sa.Float(), nullable=False),
        sa.Column("memory", sa.BigInteger(), nullable=False),
        sa.Column("gpu_percent", sa.Float(), nullable=True),
        sa.Column("gpu_memory", sa.BigInteger(), nullable=True),
    )
    with op.batch_alter_table("session") as table:
        table.add_column(sa.Column("preset", sa.String(), nullable=False, server_default=""))
    op.create_index("journal_target", "journal", ["target", "id"])
