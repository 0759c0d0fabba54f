"""A lock for extensions; the last reader of a log; no infinite meters."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_MOST_PERCENT = 1e6
_MOST_SECONDS = 1e12


def upgrade() -> None:
    """Apply."""
    with op.batch_alter_table("session") as table:
        table.add_column(sa.Column("extending", sa.DateTime(timezone=True), nullable=True))
        table.add_column(sa.Column("log_read", sa.DateTime(timezone=True), nullable=True))
        table.add_column(sa.Column("log_read_by", sa.String(), nullable=True))
    # Runners' reports were not bounded: there may be infinities, which JSON cannot represent.
    for column, most in (
        ("cpu_percent", _MOST_PERCENT),
        ("gpu_percent", _MOST_PERCENT),
        ("cpu_seconds", _MOST_SECONDS),
    ):
        row = sa.table("session", sa.column(column, sa.Float()))
        op.execute(row.update().where(row.c[column] > most).values({column: None}))
