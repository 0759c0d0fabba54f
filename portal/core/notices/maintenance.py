"""Maintenance mode: sessions go on, new ones wait until it is over."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from portal.core.auth.person import Person
from portal.core.validation import STRICT, Moment, _not_blank, _one_line, checked
from portal.errors import FieldError, Unavailable

LONGEST = timedelta(days=60)
"""A later end is taken for a mistake."""
RETRY_SECONDS = 600
"""Retry-After for programs if maintenance has no known end."""
OPEN_END = timedelta(hours=1)
"""How far the start of a waiting session is repeatedly postponed while no end is known."""

Message = Annotated[str, Field(max_length=300), checked(_one_line), checked(_not_blank)]


class MaintenanceRequest(BaseModel):
    """Maintenance as administrators announce it."""

    model_config = STRICT | ConfigDict(use_attribute_docstrings=True)

    until: Moment | None = None
    """When it is over; null: nobody knows yet, and launches are refused instead of waiting."""
    message: Message
    """What everybody reads, in one line; also before logging in."""


class Maintenance(BaseModel):
    """Maintenance that was announced."""

    model_config = ConfigDict(frozen=True)

    until: datetime | None = None
    message: str
    since: datetime
    """When it was announced, or changed last."""
    by: str

    def in_force(self, now: datetime) -> bool:
        """Whether it is not over yet."""
        return self.until is None or now < self.until

    def describe(self) -> str:
        """For the audit log."""
        end = f"until {self.until:%Y-%m-%d %H:%M} UTC" if self.until else "without a known end"
        return f"{end}: {self.message}"


class UnderMaintenance(Unavailable):
    """Nothing can be launched, and the end of maintenance is not known."""

    title = "Maintenance"
    retry_seconds = RETRY_SECONDS


def until_problems(until: datetime | None, now: datetime) -> list[FieldError]:
    """Errors for the requested end of maintenance."""
    if until is None or now < until <= now + LONGEST:
        return []
    text = f"choose a time that is to come, within {LONGEST.days} days"
    return [FieldError("until", text)]


def launch_begin(maintenance: Maintenance | None, person: Person, now: datetime) -> datetime | None:
    """The earliest start of this user's launches; None: immediately.

    Administrators need not wait, since they test repairs. Raises UnderMaintenance.
    """
    if maintenance is None or person.admin or not maintenance.in_force(now):
        return None
    if maintenance.until is None:
        raise UnderMaintenance(
            f"Maintenance: {sentence(maintenance.message)} Nothing can be launched until it is "
            "over, and its end is not known yet. Running sessions go on. Nothing was changed; "
            "try again later."
        )
    return maintenance.until


def begin_now(maintenance: Maintenance | None, begin: datetime, now: datetime) -> datetime:
    """The current start time of a session that waits for the end of maintenance.

    `begin` is the time last sent to Slurm. Without a known end it is postponed before it is
    reached.
    """
    if maintenance is None or not maintenance.in_force(now):
        return min(begin, now)
    if maintenance.until is None:
        return begin if begin - now > OPEN_END / 2 else now + OPEN_END
    return maintenance.until


def sentence(text: str) -> str:
    """Append a full stop unless the text ends with punctuation."""
    return text if text.rstrip()[-1:] in ("", ".", "!", "?", "…") else f"{text.rstrip()}."
