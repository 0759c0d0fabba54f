"""Tasks of arrays that are only counted, and partial indexes of jobs: most jobs have ended."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"

_OLD = (
    "job_newest", "job_newest_of_all", "job_tab", "job_tab_of_all", "job_ended_of_all",
    "job_started_of_all", "job_name_of_all", "job_owner_of_all", "job_status_of_all",
    "job_partition_of_all", "job_limit_of_all", "job_priority_of_all", "job_cpus_of_all",
    "job_memory_of_all", "job_queue", "job_array", "job_het", "job_to_ask", "job_without_texts",
    "job_of_session",
)  # fmt: skip


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "job_counted",
        sa.Column("array_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("array_id", "state"),
    )
    for name in _OLD:
        op.drop_index(name, "job")
    for name, (columns, where) in _indexes().items():
        op.create_index(name, "job", columns, sqlite_where=where, postgresql_where=where)


def _indexes() -> dict[str, tuple[list[str], sa.ColumnElement[bool]]]:
    texts, flags, numbers = sa.String(), sa.Boolean(), sa.BigInteger()
    tab, session = sa.column("tab", texts), sa.column("session", texts)
    array, het = sa.column("array_id", numbers), sa.column("het_id", numbers)
    left = sa.column("left", sa.DateTime())
    live, over = tab != sa.literal_column("'ended'"), tab == sa.literal_column("'ended'")
    head, task = sa.column("tab_head", flags).is_(True), sa.column("tab_head", flags).is_(False)
    head_of_all = sa.column("all_head", flags).is_(True)
    name_of_session = sa.func.length(sa.column("name", texts)) == sa.literal_column("32")
    alone = sa.and_(live, left.is_(None), session.is_(None), array.is_(None), het.is_(None))
    keys = (
        "submitted", "ended", "started", "name_key", "owner", "status_key", "partition",
        "time_limit", "priority", "cpus", "memory_mb",
    )  # fmt: skip
    return {
        "job_newest": (["owner", "submitted", "number"], head_of_all),
        "job_newest_of_all": (["submitted", "number"], head_of_all),
        "job_tab": (["owner", "tab", "submitted", "number"], head),
        "job_over": (["submitted", "number"], over & head),
        "job_ended_of_all": (["ended", "number"], over & head),
        "job_tasks_over": (["state", "ended", "number"], over & task),
        **{f"job_live_{key}": (["tab", key, "number"], live & head) for key in keys},
        "job_live": (["owner", "tab"], live),
        "job_queue": (
            ["partition", "place", "submitted", "number", "reason"],
            tab == sa.literal_column("'pending'"),
        ),
        "job_like_a_session": (["number"], alone & name_of_session),
        "job_array": (["array_id", "tab", "state", "number"], array.is_not(None)),
        "job_array_head": (["array_id"], array.is_not(None) & head),
        "job_het": (["het_id", "het_offset"], het.is_not(None)),
        "job_to_ask": (["ask_at"], sa.column("ask_at").is_not(None)),
        "job_gone": (["gone"], sa.column("gone").is_not(None)),
        "job_without_texts": (
            ["number"],
            sa.column("texted", flags).is_(False) & left.is_(None),
        ),
    }
