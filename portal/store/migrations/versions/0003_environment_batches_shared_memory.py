"""Environment variables, several sessions by one launch, shared memory."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("session") as table:
        table.add_column(sa.Column("batch", sa.String(), nullable=True))
        table.add_column(sa.Column("shared_memory_mb", sa.Integer(), nullable=True))
        table.add_column(sa.Column("env_names", sa.String(), nullable=False, server_default=""))
        table.create_index("ix_session_batch", ["batch"])
    op.create_table(
        "session_env",
        sa.Column("session", sa.String(), primary_key=True),
        sa.Column("variables", sa.String(), nullable=False),
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("session_env")
    with op.batch_alter_table("session") as table:
        table.drop_index("ix_session_batch")
        for name in ("env_names", "shared_memory_mb", "batch"):
            table.drop_column(name)
