"""Public apps, their ports, details and answers; apps of images; when sessions were used."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_TIME = sa.DateTime(timezone=True)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(), nullable=False, server_default="")


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("session") as table:
        table.add_column(_text("apps"))
        table.add_column(sa.Column("last_used", _TIME, nullable=True))
    with op.batch_alter_table("cluster") as table:
        table.add_column(_text("measured"))
    with op.batch_alter_table("app") as table:
        table.add_column(sa.Column("public_since", _TIME, nullable=True))
        table.add_column(_text("asked"))
        table.add_column(_text("details"))
        table.add_column(sa.Column("shut", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.create_table(
        "port",
        sa.Column("port", sa.Integer(), primary_key=True),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("used", _TIME, nullable=False),
    )
    op.create_table(
        "image_apps",
        sa.Column("environment", sa.String(), primary_key=True),
        sa.Column("version", sa.String(), primary_key=True),
        _text("apps"),
    )
