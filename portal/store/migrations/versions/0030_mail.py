"""Users' choices of e-mail, and messages."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    """Apply."""
    time = sa.DateTime(timezone=True)
    op.create_table(
        "mail_choice",
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("occasions", sa.String(), nullable=False),
        sa.Column("looked", time, nullable=False),
        sa.PrimaryKeyConstraint("person"),
    )
    op.create_table(
        "message",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("person", sa.String(), nullable=False),
        sa.Column("occasion", sa.String(), nullable=False),
        sa.Column("about", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("created", time, nullable=False),
        sa.Column("sent", time, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("person", "occasion", "about"),
    )
    op.create_index("ix_message_created", "message", ["created"])
    op.create_index("ix_message_sent", "message", ["sent"])
