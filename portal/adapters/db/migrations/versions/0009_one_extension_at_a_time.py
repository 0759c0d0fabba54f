"""One extension at a time; who read a log; no figures of runners that are no numbers."""

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
    # What runners reported was not bounded: there may be infinities, which JSON does not know.
    for column, most in (
        ("cpu_percent", _MOST_PERCENT),
        ("gpu_percent", _MOST_PERCENT),
        ("cpu_seconds", _MOST_SECONDS),
    ):
        row = sa.table("session", sa.column(column, sa.Float()))
        op.execute(row.update().where(row.c[column] > most).values({column: None}))
