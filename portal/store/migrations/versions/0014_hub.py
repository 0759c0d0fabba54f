"""JupyterHub's servers in sessions, and tokens of services that act for users."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_TIME = sa.DateTime(timezone=True)
_LIVE = sa.text("hub_prefix <> '' AND state NOT IN ('FINISHED', 'FAILED')")


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "service_token",
        sa.Column("hash", sa.String(), primary_key=True),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("users", sa.String(), nullable=False),
        sa.Column("groups", sa.JSON(), nullable=False),
        sa.Column("created", _TIME, nullable=False),
        sa.Column("used", _TIME, nullable=True),
        sa.Column("expires", _TIME, nullable=False),
    )
    op.create_index("ix_service_token_id", "service_token", ["id"], unique=True)
    op.create_table(
        "service_use",
        sa.Column("token", sa.String(), primary_key=True),
        sa.Column("user", sa.String(), primary_key=True),
        sa.Column("used", _TIME, nullable=False),
    )
    for table, name in (("session", "hub_prefix"), ("session_env", "hub")):
        op.add_column(table, sa.Column(name, sa.String(), nullable=False, server_default=""))
    op.create_index(
        "session_hub",
        "session",
        ["hub_prefix"],
        unique=True,
        sqlite_where=_LIVE,
        postgresql_where=_LIVE,
    )
