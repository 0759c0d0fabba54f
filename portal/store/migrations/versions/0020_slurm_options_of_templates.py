"""Slurm's own options of resource templates."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    """Apply."""
    for name in ("account", "qos", "reservation", "constraint"):
        op.add_column("template", sa.Column(name, sa.String(), nullable=True))
    op.add_column(
        "template",
        sa.Column("exclusive", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
