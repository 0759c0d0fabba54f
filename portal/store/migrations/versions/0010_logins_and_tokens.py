"""Names and dates of logins and tokens; attempts and wrong passwords."""

import secrets
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("login") as table:
        table.add_column(sa.Column("id", sa.String(), nullable=True))
        for name in ("name", "address"):
            table.add_column(sa.Column(name, sa.String(), nullable=False, server_default=""))
        for name in ("created", "used", "revoked"):
            table.add_column(sa.Column(name, sa.DateTime(timezone=True), nullable=True))
    _fill()
    with op.batch_alter_table("login") as table:
        for name in ("created", "used"):
            table.alter_column(name, existing_type=sa.DateTime(timezone=True), nullable=False)
        table.alter_column("id", existing_type=sa.String(), nullable=False)
    op.create_index("ix_login_id", "login", ["id"], unique=True)
    op.create_index("ix_login_user", "login", ["user"])
    op.create_index("ix_login_revoked", "login", ["revoked"])
    op.create_table(
        "account",
        sa.Column("user", sa.String(), primary_key=True),
        sa.Column("password", sa.String(), nullable=False),
    )
    op.create_table(
        "attempt",
        sa.Column("key", sa.String(), primary_key=True),
        sa.Column("until", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "known_network",
        sa.Column("user", sa.String(), primary_key=True),
        sa.Column("network", sa.String(), primary_key=True),
        sa.Column("seen", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "refusal",
        sa.Column("network", sa.String(), primary_key=True),
        sa.Column("hour", sa.Integer(), primary_key=True),
        sa.Column("user", sa.String(), primary_key=True),
        sa.Column("count", sa.Integer(), nullable=False),
    )


def _fill() -> None:
    """Set ids and today's date for existing logins; tokens keep their permissions."""
    login = sa.table(
        "login",
        *(sa.column(name, sa.String()) for name in ("hash", "id", "kind", "name", "scopes")),
        *(sa.column(name, sa.DateTime(timezone=True)) for name in ("created", "used")),
    )
    connection, now = op.get_bind(), datetime.now(UTC)
    for row in connection.execute(sa.select(login.c.hash, login.c.kind, login.c.scopes)).all():
        changes = {"id": secrets.token_hex(8), "created": now, "used": now}
        if row.kind == "token":
            changes |= {"name": "made before tokens had names", "scopes": f"{row.scopes} admin"}
        connection.execute(login.update().where(login.c.hash == row.hash).values(**changes))
