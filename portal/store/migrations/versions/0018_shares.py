"""Storage folders that users share."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "folder_share",
        sa.Column("owner", sa.String(), primary_key=True),
        sa.Column("folder", sa.String(), primary_key=True),
        sa.Column("kind", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("access", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_index("ix_folder_share_with", "folder_share", ["kind", "name"])
