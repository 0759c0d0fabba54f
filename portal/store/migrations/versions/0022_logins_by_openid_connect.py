"""Logins say how they were made, and what an OpenID provider said."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    """Apply."""
    for name in ("method", "issuer", "subject", "sid", "id_token"):
        column = sa.Column(name, sa.String(), nullable=False, server_default="")
        op.add_column("login", column)
    op.add_column(
        "login", sa.Column("admin", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_index("ix_login_subject", "login", ["subject"])
