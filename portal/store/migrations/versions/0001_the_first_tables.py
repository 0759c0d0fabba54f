"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "app",
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("log", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("session", "app"),
        sa.UniqueConstraint("label"),
    )
    op.create_table(
        "cluster",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("answered", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("message", sa.String(), nullable=False),
        sa.Column("partitions", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "grant",
        sa.Column("cookie_hash", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("app", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("login", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("cookie_hash"),
    )
    with op.batch_alter_table("grant", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_grant_login"), ["login"], unique=False)
        batch_op.create_index(batch_op.f("ix_grant_session"), ["session"], unique=False)

    op.create_table(
        "launch_key",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("session", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "key"),
    )
    op.create_table(
        "login",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("scopes", sa.String(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )
    op.create_table(
        "session",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("environment", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("partition", sa.String(), nullable=True),
        sa.Column("time_limit", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("token_hash", sa.String(), nullable=False),
        sa.Column("submitted", sa.DateTime(timezone=True), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=True),
        sa.Column("pending_reason", sa.String(), nullable=True),
        sa.Column("estimated_start", sa.DateTime(timezone=True), nullable=True),
        sa.Column("node", sa.String(), nullable=True),
        sa.Column("address", sa.String(), nullable=True),
        sa.Column("port", sa.Integer(), nullable=True),
        sa.Column("started", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ready", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stop_requested", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stopped_by", sa.String(), nullable=True),
        sa.Column("ended", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cause", sa.String(), nullable=True),
        sa.Column("end_text", sa.String(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("cleaned", sa.Boolean(), nullable=False),
        sa.Column("usage_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cpu_seconds", sa.Float(), nullable=True),
        sa.Column("cpu_percent", sa.Float(), nullable=True),
        sa.Column("memory_used", sa.Integer(), nullable=True),
        sa.Column("oom_kills", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    with op.batch_alter_table("session", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_session_cleaned"), ["cleaned"], unique=False)
        batch_op.create_index(batch_op.f("ix_session_job_id"), ["job_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_session_state"), ["state"], unique=False)
        batch_op.create_index("session_newest", ["owner", "created", "id"], unique=False)

    op.create_table(
        "ticket",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("login", sa.String(), nullable=False),
        sa.Column("expires", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("hash"),
    )


def downgrade() -> None:
    """Take back."""
    op.drop_table("ticket")
    with op.batch_alter_table("session", schema=None) as batch_op:
        batch_op.drop_index("session_newest")
        batch_op.drop_index(batch_op.f("ix_session_state"))
        batch_op.drop_index(batch_op.f("ix_session_job_id"))
        batch_op.drop_index(batch_op.f("ix_session_cleaned"))

    op.drop_table("session")
    op.drop_table("login")
    op.drop_table("launch_key")
    with op.batch_alter_table("grant", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_grant_session"))
        batch_op.drop_index(batch_op.f("ix_grant_login"))

    op.drop_table("grant")
    op.drop_table("cluster")
    op.drop_table("app")
