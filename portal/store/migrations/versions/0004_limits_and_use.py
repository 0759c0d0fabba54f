"""Slurm's limits, and the cluster's use."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("cluster") as table:
        table.add_column(sa.Column("limits", sa.String(), nullable=False, server_default=""))
        table.add_column(sa.Column("use", sa.String(), nullable=False, server_default=""))


def downgrade() -> None:
    """Take back."""
    with op.batch_alter_table("cluster") as table:
        table.drop_column("use")
        table.drop_column("limits")
