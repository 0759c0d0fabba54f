"""Signs of life: of the worker, of its looks at Slurm, and of the database itself."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "heartbeat",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("beaten", sa.DateTime(timezone=True), nullable=True),
    )
