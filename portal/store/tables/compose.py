"""Job templates, and jobs that were submitted from here."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from portal.core.jobs.compose.drafts import Shared
from portal.store.tables.columns import time_column


class JobTemplateRow(SQLModel, table=True):
    """A job template; the script is apart from the other fields, since lists do not need it."""

    __tablename__ = "job_template"
    __table_args__ = (Index("job_template_shared", "shared", "account"),)

    owner: str = Field(primary_key=True)
    name: str = Field(primary_key=True)
    request: str
    script: str | None = None
    shared: str = Shared.NOBODY
    account: str = ""
    saved: datetime = time_column()


class SubmissionRow(SQLModel, table=True):
    """A request to submit a job; fields as in core.jobs.compose.drafts.Submission."""

    __tablename__ = "job_submission"
    __table_args__ = (
        Index("job_submission_job", "owner", "job_id"),
        Index("job_submission_newest", "owner", "created"),
    )

    owner: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    fingerprint: str
    job_id: str = ""
    request: str | None = None
    """As JSON, with the script; None if it is not kept any more."""
    created: datetime = time_column()
