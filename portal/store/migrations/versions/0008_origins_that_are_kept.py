"""Origins with their uses, tickets bound to an app, and keys pending removal from HAProxy."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_TIME = sa.DateTime(timezone=True)


def _text(name: str, *, key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=False, primary_key=key)


def upgrade() -> None:
    """Apply."""
    origin = op.create_table(
        "origin",
        _text("label", key=True),
        sa.Column("is_port", sa.Boolean(), nullable=False),
        _text("owner"),
        _text("environment"),
        _text("version"),
        _text("app"),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("shared", sa.Boolean(), nullable=False),
        _text("mark"),
        sa.Column("used", _TIME, nullable=False),
    )
    op.create_index("ix_origin_is_port", "origin", ["is_port"])
    op.create_index("origin_use", "origin", ["owner", "environment", "version", "app"])
    _move_ports(origin)
    op.create_table(
        "shutting",
        _text("key", key=True),
        _text("session"),
        _text("app"),
        sa.Column("since", _TIME, nullable=False),
    )
    op.create_index("ix_shutting_session", "shutting", ["session"])
    # Earlier tickets have no app; they are valid for a minute only.
    op.execute(sa.text("DELETE FROM ticket"))
    with op.batch_alter_table("ticket") as table:
        table.add_column(_text("session"))
        table.add_column(_text("app"))
    op.create_index("ix_ticket_session", "ticket", ["session"])
    with op.batch_alter_table("app") as table:
        table.add_column(sa.Column("moved", _TIME, nullable=True))


def _move_ports(origin: sa.Table) -> None:
    """Earlier ports may have had several users, so they count as shared."""
    port = sa.table(
        "port", sa.column("port", sa.Integer()), sa.column("owner"), sa.column("used", _TIME)
    )
    database = op.get_bind()
    for row in database.execute(sa.select(port.c.port, port.c.owner, port.c.used)).all():
        database.execute(
            origin.insert().values(
                label=str(row.port),
                is_port=True,
                owner=row.owner,
                environment="",
                version="",
                app="",
                kept=False,
                shared=True,
                mark=secrets.token_hex(8),
                used=row.used,
            )
        )
    op.drop_table("port")
