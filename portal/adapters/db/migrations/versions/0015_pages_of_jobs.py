"""What jobs used when somebody looked, and which administrator read their output."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "job_usage",
        sa.Column("job", sa.String(), primary_key=True),
        sa.Column("asked", _TIME, nullable=False, index=True),
        sa.Column("usage", sa.String(), nullable=False),
    )
    op.create_table(
        "job_reading",
        sa.Column("job", sa.String(), primary_key=True),
        sa.Column("by", sa.String(), nullable=False),
        sa.Column("at", _TIME, nullable=False, index=True),
    )
