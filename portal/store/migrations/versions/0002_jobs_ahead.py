"""Jobs ahead in the queue, and lost jobs."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("session") as table:
        table.add_column(sa.Column("ahead", sa.Integer(), nullable=True))
        table.add_column(sa.Column("lost", sa.DateTime(timezone=True), nullable=True))


def downgrade() -> None:
    """Take back."""
    with op.batch_alter_table("session") as table:
        table.drop_column("lost")
        table.drop_column("ahead")
