"""When a login for a registry was saved, and when a job last got it."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    """Apply."""
    for name in ("added", "used"):
        op.add_column("registry_login", sa.Column(name, sa.DateTime(timezone=True), nullable=True))
