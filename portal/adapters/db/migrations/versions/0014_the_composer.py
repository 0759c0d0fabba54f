"""Job templates, and jobs that were submitted from the portal."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Apply."""
    op.create_table(
        "job_template",
        sa.Column("owner", sa.String(), primary_key=True),
        sa.Column("name", sa.String(), primary_key=True),
        sa.Column("request", sa.String(), nullable=False),
        sa.Column("script", sa.String(), nullable=True),
        sa.Column("shared", sa.String(), nullable=False),
        sa.Column("account", sa.String(), nullable=False),
        sa.Column("saved", _TIME, nullable=False),
    )
    op.create_index("job_template_shared", "job_template", ["shared", "account"])
    op.create_table(
        "job_submission",
        sa.Column("owner", sa.String(), primary_key=True),
        sa.Column("key", sa.String(), primary_key=True),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("request", sa.String(), nullable=True),
        sa.Column("created", _TIME, nullable=False),
    )
    op.create_index("job_submission_job", "job_submission", ["owner", "job_id"])
    op.create_index("job_submission_newest", "job_submission", ["owner", "created"])
