"""Tokens that a program keeps for their owner say so."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    """Apply."""
    column = sa.Column("purpose", sa.String(), nullable=False, server_default="")
    op.add_column("login", column)
