"""The sessions in the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol, Unpack

from portal.core.session.query import ListQuery, Page
from portal.core.session.session import Facts, Session, State
from portal.core.session.transitions import Transition


class SessionStore(Protocol):
    """The sessions' table. Every method is one transaction."""

    def add(
        self,
        sessions: Sequence[Session],
        key: str | None,
        fingerprint: str,
        env: Mapping[str, str],
    ) -> tuple[list[Session], bool]:
        """Store all sessions of a launch, or return (earlier ones, False) for the same key.

        Raises Conflict when the owner used the key for another request.
        """
        ...

    def env(self, session: str) -> dict[str, str]:
        """A session's environment variables, values and all; none once they are forgotten.

        Raises Unavailable when the key that they are encrypted with is missing.
        """
        ...

    def forget_variables(self, before: datetime) -> None:
        """Forget the variables of sessions that ended before then."""
        ...

    def get(self, session: str) -> Session | None:
        """One session."""
        ...

    def apply(self, session: str, transition: Transition) -> Session | None:
        """Change a session's state; None, and nothing changed, when it does not fit any more."""
        ...

    def apply_to_all(self, sessions: Collection[str], transition: Transition) -> list[Session]:
        """The same for several sessions; returns those that were changed."""
        ...

    def apply_to_batch(self, batch: str, transition: Transition) -> list[Session]:
        """The same for all sessions of one launch."""
        ...

    def change(
        self, session: str, when: Collection[State], **facts: Unpack[Facts]
    ) -> Session | None:
        """Change a session that is in one of these states, but not its state; None otherwise."""
        ...

    def change_if(
        self,
        session: str,
        when: Collection[State],
        known: Mapping[str, object],
        **facts: Unpack[Facts],
    ) -> Session | None:
        """The same, if these fields still have the known values.

        None when something else was stored meanwhile; nothing is changed then.
        """
        ...

    def forget(self, batch: str, sessions: Collection[str]) -> None:
        """Remove sessions of a launch that never came to be, and the launch's key."""
        ...

    def live(self) -> list[Session]:
        """All sessions that are not over."""
        ...

    def unclean(self) -> list[Session]:
        """All that are over and still have files."""
        ...

    def unexplained(self, text: str, since: datetime) -> list[Session]:
        """All that ended since then with this text as their explanation."""
        ...

    def ending(self, owner: str, before: datetime) -> list[Session]:
        """One owner's running sessions whose time is up before then, the next one first."""
        ...

    def unused(self, owner: str, since: datetime) -> list[Session]:
        """One owner's running sessions that nobody has used since then, in any order."""
        ...

    def note_use(self, sessions: Collection[str], now: datetime) -> None:
        """These running sessions are in use."""
        ...

    def get_many(self, sessions: Collection[str]) -> list[Session]:
        """Those of these sessions that exist, in any order."""
        ...

    def query(self, query: ListQuery) -> Page:
        """One page of the list."""
        ...

    def counts(self, owner: str | None) -> dict[State, int]:
        """How many sessions there are in each state, of one person or of all."""
        ...

    def owners(self) -> list[str]:
        """Everybody who has ever had a session."""
        ...
