"""A row for each node; the worker fills the tables at its first poll."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    """Apply."""
    op.drop_table("cluster_nodes")
    op.create_table(
        "cluster_nodes",
        sa.Column("id", sa.Integer(), primary_key=True),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("summary", sa.String(), nullable=False),
        sa.Column("users", sa.String(), nullable=False),
    )
    texts = ("partitions", "features", "state", "state_key", "reason")
    op.create_table(
        "node",
        sa.Column("name", sa.String(), primary_key=True),
        *(sa.Column(name, sa.String(), nullable=False) for name in texts),
        sa.Column("usable", sa.Boolean(), nullable=False),
        sa.Column("cpus", sa.Integer(), nullable=False),
        sa.Column("memory_mb", sa.Integer(), nullable=False),
        sa.Column("fgpu", sa.Float(), nullable=False),
        sa.Column("cpus_taken", sa.Integer(), nullable=False),
        sa.Column("held", sa.String(), nullable=False),
    )
    op.create_index("node_by_state", "node", ["state_key", "name"])
    op.create_index("node_by_cpus_taken", "node", ["cpus_taken", "name"])
