"""Users' file servers."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "file_server",
        sa.Column("owner", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("address", sa.String(), nullable=False),
        sa.Column("port", sa.Integer(), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("starting", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cleaned", sa.DateTime(timezone=True), nullable=True),
    )
