"""Filters, sorting and pagination of the session list, for pages and REST API."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from portal.core.listing import Cursor, CursorText, Order, PlainText, SearchQuery, SearchText
from portal.core.session.session import LIVE, Cause, Session, State

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


class Sort(Order):
    """Orders of the session list."""

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


def end_reason(text: str) -> str:
    """The reason for an end as stored: one printable line in NFC; raises ValueError."""
    reason = unicodedata.normalize("NFC", text.strip())
    if len(reason) > MAX_REASON or not reason.isprintable():
        raise ValueError(f"use up to {MAX_REASON} printable characters in one line")
    return reason


class ListQuery(SearchQuery):
    """Which sessions to list: filters, sorting, page size and cursor."""

    state: Literal["running", "finished", "other"] | None = None
    owner: PlainText | None = None
    q: SearchText = None
    environment: PlainText | None = None
    resource_group: PlainText | None = None
    hub: PlainText | None = Field(None, description="The path of a server of JupyterHub's")
    status: Status | None = None
    days: Annotated[int, Field(ge=1, le=3650, description="Launched in the last N days")] | None = (
        None
    )
    sort: Sort = Sort.NEWEST
    limit: Annotated[int, Field(ge=1, le=MAX_AT_ONCE)] = 100
    cursor: CursorText | None = None

    @property
    def states(self) -> frozenset[State]:
        """The states of the sessions to list."""
        return TABS[self.state] if self.state else frozenset(State)

    @property
    def narrowed(self) -> bool:
        """Whether there are filters other than the tab."""
        others = (self.environment, self.resource_group, self.status, self.days)
        return any((self.words, self.owner, *others))

    @property
    def place(self) -> Cursor[Sort] | None:
        """Where the page begins; None at the start of the list."""
        return Cursor.read(self.cursor, Sort) if self.cursor else None


@dataclass(frozen=True)
class Page:
    """One page of a list, and the cursors of the next and the previous page."""

    sessions: tuple[Session, ...] = ()
    following: str | None = None
    previous: str | None = None


def count_tabs(states: Mapping[State, int]) -> dict[str, int]:
    """Number of sessions in each tab; "waiting": of the waiting sessions in the first tab."""
    tabs = {tab: sum(states.get(state, 0) for state in of) for tab, of in TABS.items()}
    return tabs | {"waiting": states.get(State.SUBMITTING, 0) + states.get(State.PENDING, 0)}
