"""Users' own images: what a session runs, what its job does before that, logins of registries."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Apply."""
    for name in ("image", "progress"):
        column = sa.Column(name, sa.String(), nullable=False, server_default="")
        op.add_column("session", column)
    op.add_column("session", sa.Column("progress_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "registry_login",
        sa.Column("owner", sa.String(), primary_key=True),
        sa.Column("host", sa.String(), primary_key=True),
        sa.Column("user", sa.String(), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
    )
