"""Interface to the store of sessions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol, Unpack

from portal.core.session.ended_lately import EndedLately
from portal.core.session.query import ListQuery, Page
from portal.core.session.session import Facts, Session, State
from portal.core.session.transitions import Transition


class SessionStore(Protocol):
    """Sessions, their variables and launch keys. Every method is one transaction."""

    def add(
        self,
        sessions: Sequence[Session],
        key: str | None,
        fingerprint: str,
        env: Mapping[str, str],
        hub_env: Mapping[str, str] | None = None,
    ) -> tuple[list[Session], bool]:
        """Store all sessions of a launch and return (them as stored, True).

        Names that live sessions of the owner have get a number, in the same transaction, so that
        concurrent launches get different ones.

        `key` is the Idempotency-Key: for one that the owner has already used, returns (the
        sessions of that launch, False) if `fingerprint` is the same. Raises KeyReused if it
        differs, and Conflict if that launch has just been refused, or if a live session has
        JupyterHub's server at the same path; `hub_env` are that server's variables.
        """
        ...

    def has_key(self, owner: str, key: str) -> bool:
        """Whether the owner has already used this Idempotency-Key."""
        ...

    def env(self, session: str) -> dict[str, str]:
        """A session's environment variables with their values; {} once they are deleted.

        Raises Unavailable if the key that encrypts them is missing.
        """
        ...

    def hub_env(self, session: str) -> dict[str, str]:
        """The variables of JupyterHub's server in a session; {} once it is over."""
        ...

    def forget_hub_env(self) -> None:
        """Delete these variables of sessions that are over."""
        ...

    def forget_variables(self, before: datetime) -> None:
        """Delete the variables of sessions that ended before a time."""
        ...

    def get(self, session: str) -> Session | None:
        """One session; None if there is none of this id."""
        ...

    def apply(self, session: str, transition: Transition) -> Session | None:
        """Apply a transition; None, without a change, if the stored session does not fit it."""
        ...

    def apply_to_all(self, sessions: Collection[str], transition: Transition) -> list[Session]:
        """The same for several sessions; returns those that changed."""
        ...

    def apply_to_batch(self, batch: str, transition: Transition) -> list[Session]:
        """The same for all sessions of one launch."""
        ...

    def change(
        self, session: str, when: Collection[State], **facts: Unpack[Facts]
    ) -> Session | None:
        """Update a session whose state is one of `when`, and return it; otherwise None."""
        ...

    def change_if(
        self,
        session: str,
        when: Collection[State],
        known: Mapping[str, object],
        **facts: Unpack[Facts],
    ) -> Session | None:
        """Update a session if its state is one of `when` and the fields `known` are unchanged.

        A compare-and-set: None, without a change, if something else was stored meanwhile.
        """
        ...

    def forget(self, batch: str, sessions: Collection[str]) -> None:
        """Delete sessions of a launch that was refused, and the launch's key."""
        ...

    def live(self) -> list[Session]:
        """All sessions that have not ended."""
        ...

    def unclean(self) -> list[Session]:
        """All ended sessions whose files are still to be deleted."""
        ...

    def unexplained(self, text: str, since: datetime) -> list[Session]:
        """All sessions that ended since a time with this text as the explanation."""
        ...

    def ending(self, owner: str, before: datetime) -> list[Session]:
        """An owner's running sessions with a deadline before a time, soonest first."""
        ...

    def unused(self, owner: str, since: datetime) -> list[Session]:
        """An owner's running sessions that have been unused since a time, in any order."""
        ...

    def ended_unseen(self, owner: str, since: datetime, most: int) -> EndedLately:
        """An owner's ends since a time that they have not seen, the newest `most` of them."""
        ...

    def see_ends(self, owner: str, until: datetime, now: datetime) -> int:
        """Mark all ends of an owner up to a time as seen; returns how many were not."""
        ...

    def note_use(self, sessions: Collection[str], now: datetime) -> None:
        """Set the time of last use of the running ones of these sessions."""
        ...

    def get_many(self, sessions: Collection[str]) -> list[Session]:
        """Those of these sessions that exist, in any order."""
        ...

    def holding(self, owners: Collection[str]) -> list[Session]:
        """The sessions of these owners that hold their resources, in any order."""
        ...

    def query(self, query: ListQuery, now: datetime) -> Page:
        """One page of the list."""
        ...

    def counts(self, query: ListQuery, now: datetime) -> dict[State, int]:
        """Number of sessions in each state that match all filters but the tab and the status."""
        ...

    def owners(self) -> list[str]:
        """All owners of sessions, sorted."""
        ...
