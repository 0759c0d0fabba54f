"""When pages of a login were last visible."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    """Apply."""
    op.add_column("login", sa.Column("seen", sa.DateTime(timezone=True), nullable=True))
