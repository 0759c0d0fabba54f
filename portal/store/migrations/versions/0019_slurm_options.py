"""Slurm's own options of a session."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    """Apply."""
    for name in ("account", "qos", "reservation", "constraint"):
        op.add_column("session", sa.Column(name, sa.String(), nullable=False, server_default=""))
    op.add_column(
        "session",
        sa.Column("exclusive", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
