"""What is kept about jobs that somebody looked at."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel

from portal.store.tables.columns import time_column


class JobUsageRow(SQLModel, table=True):
    """What a job used when Slurm was last asked, as JSON; "" if it was asked in vain."""

    __tablename__ = "job_usage"

    job: str = Field(primary_key=True)
    asked: datetime = time_column(index=True)
    usage: str = ""


class JobReadingRow(SQLModel, table=True):
    """The last time that an administrator read the output of somebody's job."""

    __tablename__ = "job_reading"

    job: str = Field(primary_key=True)
    by: str
    at: datetime = time_column(index=True)
