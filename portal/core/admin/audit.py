"""The journal's words, and how it is searched."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import Annotated

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    WithJsonSchema,
)

from portal.core.validation import checked, wrong
from portal.errors import FieldError, InvalidRequest

WORDS: Mapping[str, str] = MappingProxyType(
    {
        "login": "Logged in",
        "login.refused": "Log-in refused",
        "logout": "Logged out",
        "token.make": "Made an API token",
        "token.revoke": "Revoked an API token",
        "browser.revoke": "Logged a browser out",
        "account.out": "An account was shut out",
        "session.launch": "Launched a session",
        "session.refused": "Launch refused by Slurm",
        "session.end": "Ended a session",
        "session.extend": "Extended a session",
        "session.keep": "Kept an unused session",
        "session.idle": "An unused session was ended",
        "session.release": "Released a held session",
        "log.read": "Read somebody's log",
        "app.open": "Opened an app",
        "app.close": "Closed an app",
        "app.move": "Moved an app to another port",
        "ssh.key": "Fetched the SSH key",
        "ssh.renew": "Made a new SSH key",
        "app.publish": "Opened an app to everybody",
        "app.unpublish": "Made an app private",
        "folder.make": "Made a folder",
        "template.make": "Made a template",
        "template.change": "Changed a template",
        "template.order": "Moved a template",
        "template.delete": "Deleted a template",
        "image.show": "Changed who sees an image",
        "caps.change": "Changed the caps",
    }
)
"""Every action that is noted, and how pages say it."""

MAX_DETAIL = 500
_FIRST, _LAST = 1, 2**63 - 1


def _short(text: str) -> str:
    if len(text) > 200 or not text.isprintable():
        raise ValueError("use up to 200 printable characters")
    return text


def _in_utc(moment: datetime) -> datetime:
    # As databases compare it: not every moment that can be written has one there.
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise wrong("choose a moment in the years 1 to 9999 of UTC") from None


_Short = Annotated[str, checked(_short), WithJsonSchema({"type": "string", "maxLength": 200})]
_Moment = Annotated[AwareDatetime, AfterValidator(_in_utc)]


class AuditFilter(BaseModel):
    """Which lines: those to which all that is given applies."""

    model_config = ConfigDict(frozen=True)

    who: _Short | None = None
    action: _Short | None = None
    text: _Short | None = None
    """Occurs in the target, the detail or the address, in whatever case."""
    since: _Moment | None = None
    until: _Moment | None = None
    """The first moment that does not count any more."""


class AuditQuery(AuditFilter):
    """The same as programs ask it; unknown parameters are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    limit: Annotated[int, Field(ge=1, le=500)] = 100
    cursor: str | None = None


def day_bounds(day: str) -> tuple[datetime, datetime]:
    """First and last moment (UTC) of a day such as 2026-11-21; raises InvalidRequest."""
    try:
        begun = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
        return begun, begun + timedelta(days=1)
    except (ValueError, OverflowError):
        problem = FieldError("day", "write a day as 2026-11-21")
        raise InvalidRequest([problem]) from None


def read_cursor(cursor: str | None) -> int | None:
    """The id of the last line that was shown; raises InvalidRequest."""
    if cursor is None:
        return None
    number = int(cursor) if cursor.isascii() and cursor.isdigit() and len(cursor) < 20 else 0
    if not _FIRST <= number <= _LAST:
        raise InvalidRequest([FieldError("cursor", "use the cursor of an earlier answer")])
    return number


class AuditEvent(BaseModel):
    """One line of the journal: who did what, when, to what, and from where."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: int = 0
    """Given by the store; later entries have larger ones."""
    time: datetime
    who: str
    action: str
    """One of core/admin/audit.py's words, such as "session.launch"."""
    target: str = ""
    detail: str = ""
    address: str = ""
