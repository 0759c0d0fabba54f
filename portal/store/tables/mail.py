"""Users' choices of e-mail, and messages that wait or were sent."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Field, SQLModel, UniqueConstraint

from portal.store.tables.columns import time_column


class MailChoiceRow(SQLModel, table=True):
    """What a user wants to be told about, and until when events were looked at."""

    __tablename__ = "mail_choice"

    person: str = Field(primary_key=True)
    occasions: str
    """Separated by blanks."""
    looked: datetime = time_column()


class MessageRow(SQLModel, table=True):
    """A message; kept after it was sent, so that it is not sent again."""

    __tablename__ = "message"
    __table_args__ = (UniqueConstraint("person", "occasion", "about"),)

    id: int | None = Field(default=None, primary_key=True)
    person: str
    occasion: str
    about: str
    subject: str
    text: str
    created: datetime = time_column(index=True)
    sent: datetime | None = time_column(default=None, index=True)
    """When it was sent or given up."""
