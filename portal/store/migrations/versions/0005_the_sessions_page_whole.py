"""Mounts, ends and deadlines of sessions; presets; administrators' settings; the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_TIME = sa.DateTime(timezone=True)


def _text(name: str, default: str | None = "") -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=False, server_default=default)


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("session") as table:
        table.add_column(_text("mounts", "[]"))
        table.add_column(sa.Column("shared_memory_cap_mb", sa.Integer(), nullable=True))
        table.add_column(_text("end_log"))
        table.add_column(sa.Column("deadline", _TIME, nullable=True))
        table.add_column(sa.Column("restarts", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("requeued", _TIME, nullable=True))
    # With the state last: live sessions are found fast among many ended ones of an owner.
    op.drop_index("session_newest", "session")
    op.create_index("session_newest", "session", ["owner", "created", "id", "state"])
    op.create_index("session_newest_of_all", "session", ["created", "id"])
    op.create_index("session_tab", "session", ["owner", "state", "created", "id"])
    op.create_index("session_tab_of_all", "session", ["state", "created", "id"])
    op.drop_index("ix_session_state", "session")  # the one above begins with it
    op.create_table(
        "preset",
        sa.Column("owner", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), primary_key=True),
        _text("request", None),
        sa.Column("saved", _TIME, nullable=False),
    )
    op.create_table(
        "template",
        sa.Column("name", sa.String(), primary_key=True),
        _text("title", None),
        _text("description"),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("shared_memory_mb", sa.Integer(), nullable=True),
        sa.Column("time_limit", sa.Integer(), nullable=True),
        sa.Column("resource_group", sa.String(), nullable=True),
        sa.Column("place", sa.Integer(), nullable=False, server_default="0"),
    )
    op.create_table(
        "image_rule",
        sa.Column("environment", sa.String(), primary_key=True),
        sa.Column("version", sa.String(), primary_key=True),
        _text("seen_by", None),
        _text("accounts"),
        _text("users"),
    )
    op.create_table(
        "site_rule",
        sa.Column("name", sa.String(), primary_key=True),
        _text("value", None),
    )
    op.create_table(
        "journal",
        sa.Column("id", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("time", _TIME, nullable=False, index=True),
        _text("who", None),
        _text("action", None),
        _text("target"),
        _text("detail"),
        _text("address"),
    )
    op.create_index("journal_who", "journal", ["who", "id"])


def downgrade() -> None:
    """Take back."""
    for name in ("journal", "site_rule", "image_rule", "template", "preset"):
        op.drop_table(name)
    op.create_index("ix_session_state", "session", ["state"])
    for name in ("session_tab_of_all", "session_tab", "session_newest_of_all"):
        op.drop_index(name, "session")
    op.drop_index("session_newest", "session")
    op.create_index("session_newest", "session", ["owner", "created", "id"])
    with op.batch_alter_table("session") as table:
        for name in ("requeued", "restarts", "deadline", "end_log", "mounts"):
            table.drop_column(name)
        table.drop_column("shared_memory_cap_mb")
