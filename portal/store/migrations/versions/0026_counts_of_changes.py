"""Counts of changes, which triggers keep (store/tables/changes.py)."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "change_count",
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("scope"),
    )
