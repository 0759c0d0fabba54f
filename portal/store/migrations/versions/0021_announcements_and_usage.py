"""Announcements, sessions that wait for the end of maintenance, and an index for usage."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "announcement",
        sa.Column("id", sa.String(), primary_key=True),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("link_title", sa.String(), nullable=False),
        sa.Column("link_url", sa.String(), nullable=False),
        sa.Column("level", sa.String(), nullable=False),
        sa.Column("starts", _TIME, nullable=True),
        sa.Column("ends", _TIME, nullable=True),
        sa.Column("dismissable", sa.Boolean(), nullable=False),
        sa.Column("on_login", sa.Boolean(), nullable=False),
        sa.Column("created", _TIME, nullable=False),
    )
    op.add_column("session", sa.Column("begin", _TIME, nullable=True))
    columns = ["owner", "account", "environment", "cpus", "fgpu"]
    op.create_index("session_usage_started", "session", ["started", "ended", *columns])
    op.create_index("session_usage_ended", "session", ["ended", "started", *columns])
    opened = sa.text("action = 'app.open'")
    op.create_index(
        "journal_opened",
        "journal",
        ["target", "detail"],
        sqlite_where=opened,
        postgresql_where=opened,
    )
