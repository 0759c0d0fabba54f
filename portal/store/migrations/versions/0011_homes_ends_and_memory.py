"""Kinds of homes, chosen names, files in homes, dismissed notices, killed processes, app titles."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

_TIME = sa.DateTime(timezone=True)
_GENERATED = re.compile(r"[a-z]{8,16}[0-9]{1,2}")
"""What names of two words and a number look like."""


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("session") as table:
        table.add_column(
            sa.Column("named", sa.Boolean(), nullable=False, server_default=sa.false())
        )
        table.add_column(sa.Column("home", sa.String(), nullable=False, server_default="session"))
        for name in ("oom_program", "stop_reason"):
            table.add_column(sa.Column(name, sa.String(), nullable=False, server_default=""))
        for name in ("end_seen", "oom_at", "oom_seen"):
            table.add_column(sa.Column(name, _TIME, nullable=True))
        table.add_column(sa.Column("home_files", sa.Integer(), nullable=True))
        for name in ("memory_peak", "home_bytes"):
            table.add_column(sa.Column(name, sa.BigInteger(), nullable=True))
    op.create_index("session_unseen", "session", ["owner", "end_seen", "ended"])
    op.create_table(
        "ended_app",
        sa.Column("label", sa.String(), primary_key=True),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("ended", _TIME, nullable=False, index=True),
    )
    op.create_table(
        "cluster_nodes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("nodes", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("app") as table:
        table.add_column(sa.Column("title", sa.String(), nullable=False, server_default=""))
    _fill()


def _fill() -> None:
    """Mark names that do not look generated; ends and kills so far need no notice."""
    session = sa.table(
        "session",
        *(sa.column(name, sa.String()) for name in ("id", "name")),
        sa.column("named", sa.Boolean()),
        *(sa.column(name, _TIME) for name in ("ended", "end_seen")),
    )
    connection = op.get_bind()
    connection.execute(session.update().values(end_seen=session.c.ended))
    for row in connection.execute(sa.select(session.c.id, session.c.name)).all():
        if not _GENERATED.fullmatch(row.name):
            connection.execute(session.update().where(session.c.id == row.id).values(named=True))
