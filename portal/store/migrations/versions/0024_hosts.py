"""Several portal hosts, their confirmations of revocations, and the worker's lease."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    """Apply."""
    time = sa.DateTime(timezone=True)
    op.create_table(
        "host",
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("machine", sa.String(), nullable=False),
        sa.Column("seen", time, nullable=False),
        sa.Column("traffic", sa.String(), nullable=False),
    )
    op.create_table(
        "removed",
        sa.Column("key", sa.String(), primary_key=True),
        sa.Column("host", sa.String(), primary_key=True),
        sa.Column("since", time, nullable=False),
    )
    op.create_table(
        "lease",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("since", time, nullable=False),
        sa.Column("renewed", time, nullable=True),
    )
