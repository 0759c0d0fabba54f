"""Filters, sorting and pagination of the session list, for pages and REST API.

Keyset pagination: a page begins where the last one ended, without counting rows. So it is fast for
lists of any length, and new rows between two requests do not cause duplicates.
"""

from __future__ import annotations

import base64
import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from portal.core.session.session import LIVE, Cause, Session, State
from portal.core.validation import wrong

TABS = {
    "running": LIVE,
    "finished": frozenset({State.FINISHED}),
    "other": frozenset({State.FAILED}),
}
"""The tabs of the page, and the values of `state` in the API."""

MAX_AT_ONCE = 500
"""Sessions in one response, or ended by one request."""
MAX_REASON = 200
"""Characters of the reason for an end."""


class Status(StrEnum):
    """States and ends of sessions to filter by."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    ENDED_ON_REQUEST = "ended_on_request"
    UNUSED = "unused"
    TIME_LIMIT = "time_limit"
    BY_ITSELF = "by_itself"
    DID_NOT_START = "did_not_start"
    OUT_OF_MEMORY = "out_of_memory"
    NODE_FAILURE = "node_failure"
    PREEMPTED = "preempted"
    FAILED = "failed"


STATES_OF = {
    Status.WAITING: frozenset({State.SUBMITTING, State.PENDING}),
    Status.STARTING: frozenset({State.STARTING}),
    Status.RUNNING: frozenset({State.RUNNING}),
    Status.ENDING: frozenset({State.ENDING}),
}
CAUSE_OF = {
    Status.ENDED_ON_REQUEST: Cause.CANCELLED,
    Status.UNUSED: Cause.IDLE,
    Status.TIME_LIMIT: Cause.TIME_LIMIT,
    Status.BY_ITSELF: Cause.FINISHED,
    Status.DID_NOT_START: Cause.START_FAILED,
    Status.OUT_OF_MEMORY: Cause.OUT_OF_MEMORY,
    Status.NODE_FAILURE: Cause.NODE_FAILURE,
    Status.PREEMPTED: Cause.PREEMPTED,
    Status.FAILED: Cause.FAILED,
}

_MAX_WORDS = 8
_MAX_TEXT = 200


class Sort(StrEnum):
    """What the list is sorted by; a leading dash reverses the order."""

    NEWEST = "-created"
    OLDEST = "created"
    NAME = "name"
    NAME_BACK = "-name"
    STATE = "state"
    STATE_BACK = "-state"
    OWNER = "owner"
    OWNER_BACK = "-owner"
    STARTED_LAST = "-started"
    STARTED_FIRST = "started"
    MOST_CPUS = "-cpus"
    FEWEST_CPUS = "cpus"
    MOST_MEMORY = "-memory"
    LEAST_MEMORY = "memory"

    @property
    def key(self) -> str:
        """The sort key without its direction."""
        return self.value.removeprefix("-")

    @property
    def falling(self) -> bool:
        """Whether the order is descending."""
        return self.value.startswith("-")

    @property
    def turned(self) -> Sort:
        """The same in reverse order."""
        return Sort(self.key if self.falling else f"-{self.key}")


@dataclass(frozen=True)
class Cursor:
    """A position in a sorted list: right after, or right before, the row with this key and id."""

    sort: Sort
    before: bool
    key: str | int | datetime
    id: str

    def __str__(self) -> str:
        """The opaque text for URLs."""
        moment = isinstance(self.key, datetime)
        key = self.key.isoformat() if isinstance(self.key, datetime) else self.key
        text = json.dumps([self.sort, self.before, moment, key, self.id])
        return base64.urlsafe_b64encode(text.encode()).decode()

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Parse the cursor of an earlier response; raises ValueError for anything else."""
        try:
            data = json.loads(base64.b64decode(text.encode(), altchars=b"-_", validate=True))
            sort, before, moment, key, identifier = data
            # Databases compare in UTC; not every valid timestamp can be converted.
            key = _moment(key) if moment else key
            cursor = cls(Sort(sort), before, key, identifier)
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise ValueError("not a cursor") from None
        if type(before) is not bool or not _is_text(identifier) or not cursor._fits():
            raise ValueError("not a cursor")
        return cursor

    def _fits(self) -> bool:
        """Whether the key has the type of this sort key."""
        match self.sort.key:
            case "created" | "started":
                return isinstance(self.key, datetime)
            case "cpus" | "memory":
                # Greater numbers do not fit into the database's column.
                return type(self.key) is int and abs(self.key) < 2**31
            case _:
                return _is_text(self.key)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("a time without an offset")
    return moment.astimezone(UTC)


def _is_text(value: object) -> TypeGuard[str]:
    # Stored texts have no control characters or lone surrogates, which databases refuse.
    return isinstance(value, str) and len(value) <= _MAX_TEXT and value.isprintable()


def end_reason(text: str) -> str:
    """The reason for an end as stored: one printable line in NFC; raises ValueError."""
    reason = unicodedata.normalize("NFC", text.strip())
    if len(reason) > MAX_REASON or not reason.isprintable():
        raise ValueError(f"use up to {MAX_REASON} printable characters in one line")
    return reason


class ListQuery(BaseModel):
    """Which sessions to list: filters, sorting, page size and cursor."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    state: Literal["running", "finished", "other"] | None = None
    owner: str | None = None
    q: str | None = Field(None, description="Words that all have to occur somewhere")
    environment: str | None = None
    resource_group: str | None = None
    status: Status | None = None
    days: Annotated[int, Field(ge=1, le=3650, description="Launched in the last N days")] | None = (
        None
    )
    sort: Sort = Sort.NEWEST
    limit: Annotated[int, Field(ge=1, le=MAX_AT_ONCE)] = 100
    cursor: str | None = None

    @field_validator("owner", "q", "environment", "resource_group")
    @classmethod
    def _plain(cls, value: str | None) -> str | None:
        if value is not None and not _is_text(value):
            raise wrong(f"use up to {_MAX_TEXT} printable characters")
        return value and unicodedata.normalize("NFC", value)  # as names are stored

    @field_validator("cursor")
    @classmethod
    def _of_this_list(cls, value: str | None, info: Any) -> str | None:
        try:
            if value is None or Cursor.read(value).sort is info.data.get("sort"):
                return value
        except ValueError:
            pass
        raise wrong("use the cursor of an earlier answer")

    @property
    def states(self) -> frozenset[State]:
        """The states of the sessions to list."""
        return TABS[self.state] if self.state else frozenset(State)

    @property
    def words(self) -> list[str]:
        """The search words."""
        return (self.q or "").split()[:_MAX_WORDS]

    @property
    def narrowed(self) -> bool:
        """Whether there are filters other than the tab."""
        others = (self.environment, self.resource_group, self.status, self.days)
        return any((self.words, self.owner, *others))

    @property
    def place(self) -> Cursor | None:
        """Where the page begins; None at the start of the list."""
        return Cursor.read(self.cursor) if self.cursor else None

    def parameters(self, **changes: str | None) -> dict[str, str]:
        """The URL parameters of this query with changes, without defaults."""
        values = self.model_dump(exclude={"limit"}, exclude_defaults=True) | changes
        if "cursor" not in changes:
            values.pop("cursor", None)  # a changed list begins at its start
        return {key: str(value) for key, value in values.items() if value}


def read_leniently(values: Mapping[str, str], **fixed: Any) -> ListQuery:
    """Parse the parameters of a page's URL; invalid ones are ignored."""
    kept = {key: values[key].strip() for key in ListQuery.model_fields if key in values}
    kept = {key: value for key, value in kept.items() if value} | fixed
    while True:
        try:
            return ListQuery.model_validate(kept)
        except ValidationError as error:
            wrong = {detail["loc"][0] for detail in error.errors()}
            kept = {key: value for key, value in kept.items() if key not in wrong}


@dataclass(frozen=True)
class Page:
    """One page of a list, and the cursors of the next and the previous page."""

    sessions: tuple[Session, ...] = ()
    following: str | None = None
    previous: str | None = None


def count_tabs(states: Mapping[State, int]) -> dict[str, int]:
    """Number of sessions in each tab, and ("waiting") of those in the first one that wait."""
    tabs = {tab: sum(states.get(state, 0) for state in of) for tab, of in TABS.items()}
    return tabs | {"waiting": states.get(State.SUBMITTING, 0) + states.get(State.PENDING, 0)}
