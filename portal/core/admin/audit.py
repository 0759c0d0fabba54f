"""Actions of the audit log, and how it is searched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from portal.core.admin.csv_text import csv_line
from portal.core.validation import Moment, checked
from portal.errors import FieldError, InvalidRequest

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "login": "Logged in",
        "login.refused": "Login refused",
        "logout": "Logged out",
        "token.make": "Created an API token",
        "token.revoke": "Revoked an API token",
        "browser.revoke": "Logged a browser out",
        "service.make": "Created a service token",
        "service.revoke": "Revoked a service token",
        "service.use": "A service acted for a user",
        "account.out": "An account lost access",
        "session.launch": "Launched a session",
        "session.refused": "Launch refused by Slurm",
        "session.end": "Ended a session",
        "session.adopt": "Adopted a session that the portal had lost",
        "session.extend": "Extended a session",
        "session.keep": "Kept an unused session",
        "session.idle": "An unused session was ended",
        "session.release": "Released a held session",
        "job.cancel": "Cancelled a job",
        "job.hold": "Held a job",
        "job.release": "Released a held job",
        "job.requeue": "Requeued a job",
        "job.extend": "Extended a job",
        "job.submit": "Submitted a job",
        "job_template.share": "Shared a job template",
        "job_template.delete": "Deleted a shared job template",
        "log.read": "Read another user's log",
        "job.read": "Read the output of another user's job",
        "app.open": "Opened an app",
        "app.close": "Locked everybody out of an app",
        "app.stop": "Stopped an app",
        "app.restart": "Restarted an app",
        "app.move": "Moved an app to another port",
        "ssh.key": "Fetched the SSH key",
        "ssh.renew": "Created a new SSH key",
        "ssh.add": "Added a public SSH key",
        "ssh.remove": "Removed a public SSH key",
        "app.publish": "Made an app public",
        "app.unpublish": "Made an app private",
        "folder.make": "Created a folder",
        "folder.share": "Shared a folder",
        "folder.unshare": "Took access to a folder back",
        "template.make": "Created a template",
        "template.change": "Changed a template",
        "template.order": "Moved a template",
        "template.delete": "Deleted a template",
        "image.show": "Changed who sees an image",
        "caps.change": "Changed the caps",
        "journal.export": "Exported the journal",
        "announcement.make": "Wrote an announcement",
        "announcement.change": "Changed an announcement",
        "announcement.delete": "Deleted an announcement",
        "maintenance.on": "Began maintenance",
        "maintenance.change": "Changed the maintenance",
        "maintenance.off": "Ended maintenance",
        "usage.export": "Exported the usage",
    }
)
"""Every recorded action, with its text for pages."""

MAX_DETAIL = 500
MAX_EXPORT = 100_000
"""Events in one exported file."""
_FIRST, _LAST = 1, 2**63 - 1


def _short(text: str) -> str:
    if len(text) > 200 or not text.isprintable():
        raise ValueError("use up to 200 printable characters")
    return text


_Short = Annotated[str, checked(_short), WithJsonSchema({"type": "string", "maxLength": 200})]


class AuditFilter(BaseModel):
    """Which events to return: those that match all given criteria."""

    model_config = ConfigDict(frozen=True)

    who: _Short | None = None
    action: _Short | None = None
    text: _Short | None = None
    """Substring of the target, the detail or the address; case-insensitive."""
    since: Moment | None = None
    until: Moment | None = None
    """End of the interval, exclusive."""


class AuditQuery(AuditFilter):
    """The filter as a query of the REST API; unknown parameters are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: str | None = None


def day_bounds(day: str) -> tuple[datetime, datetime]:
    """Start (inclusive) and end (exclusive) in UTC of a day such as 2026-11-21.

    Raises InvalidRequest.
    """
    try:
        start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
        return start, start + timedelta(days=1)
    except (ValueError, OverflowError):
        problem = FieldError("day", "use a date such as 2026-11-21")
        raise InvalidRequest([problem]) from None


def read_cursor(cursor: str | None) -> int | None:
    """The id of the last event shown; raises InvalidRequest."""
    if cursor is None:
        return None
    number = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 20 else 0
    if not _FIRST <= number <= _LAST:
        raise InvalidRequest([FieldError("cursor", "use the cursor of an earlier answer")])
    return number


class AuditEvent(BaseModel):
    """One event of the audit log: user, action, time, target and client address."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: int = 0
    """Assigned by the store; later events have larger ids."""
    time: datetime
    who: str
    action: str
    """A key of WORDS, such as "session.launch"."""
    target: str = ""
    detail: str = ""
    address: str = ""


_COLUMNS = ("time", "who", "action", "what", "detail", "target", "from")


def csv_lines(events: Iterable[AuditEvent]) -> Iterator[str]:
    """Events as a CSV file, line by line, with a header; times in UTC."""
    yield csv_line(_COLUMNS)
    for event in events:
        text = WORDS.get(event.action, event.action)
        texts = (event.who, event.action, text, event.detail, event.target, event.address)
        yield csv_line((event.time.isoformat(timespec="seconds"), *texts))
