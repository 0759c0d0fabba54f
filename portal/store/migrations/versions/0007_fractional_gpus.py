"""Fractional GPUs: granted amounts, their use, and templates with a GPU."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=False, server_default="")


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("session") as table:
        # PostgreSQL's plain integer ends at 2 GB.
        table.alter_column("memory_used", type_=sa.BigInteger(), existing_nullable=True)
        table.add_column(sa.Column("fgpu", sa.Float(), nullable=True))
        table.add_column(_text("gpu_kind"))
        table.add_column(_text("gres"))
        table.add_column(sa.Column("gpu_memory_mb", sa.Integer(), nullable=True))
        table.add_column(sa.Column("gpu_sm_percent", sa.Integer(), nullable=True))
        table.add_column(sa.Column("gpu_memory_used", sa.BigInteger(), nullable=True))
        table.add_column(sa.Column("gpu_percent", sa.Float(), nullable=True))
        table.add_column(sa.Column("gpu_kills", sa.Integer(), nullable=False, server_default="0"))
    with op.batch_alter_table("template") as table:
        table.add_column(sa.Column("fgpu", sa.Float(), nullable=True))
        table.add_column(sa.Column("gpu_kind", sa.String(), nullable=True))
