"""What the story needs of the database; every method is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from portal.core.access import AppState, Entrance, Grant, OpenApp, Redeemed, Ticket
from portal.core.idle import Measured
from portal.core.job import Partition
from portal.core.limits import Limits
from portal.core.listing import ListQuery, Page
from portal.core.origins import Choice, Places, Seeker
from portal.core.preset import Kept, Preset
from portal.core.session import Session, State
from portal.core.usage import Room, Use


@dataclass(frozen=True)
class SlurmStatus:
    """When Slurm last answered the worker, and since when it has not."""

    answered: datetime | None
    failing_since: datetime | None
    message: str = ""
    rooms: tuple[Room, ...] = ()
    """What of each partition nobody held at the last look."""


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

    def change(self, session: str, when: Collection[State], **changes: object) -> Session | None:
        """Change a session if it is in one of these states; None when it was not."""
        ...

    def change_if(
        self,
        session: str,
        when: Collection[State],
        known: Mapping[str, object],
        **changes: object,
    ) -> Session | None:
        """Change a session if it is in one of these states and these fields are as known.

        None when something else was stored meanwhile; nothing is changed then.
        """
        ...

    def change_batch(self, batch: str, when: Collection[State], **changes: object) -> list[Session]:
        """Change those sessions of a launch that are in one of these states, and return them."""
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

    def end_unused(self, session: str, since: datetime, **changes: object) -> Session | None:
        """Change a running session unless somebody has used it after `since`; then None."""
        ...

    def some(self, sessions: Collection[str]) -> list[Session]:
        """Those of these sessions that exist, in any order."""
        ...

    def change_all(
        self, sessions: Collection[str], when: Collection[State], **changes: object
    ) -> list[Session]:
        """Change those of these sessions that are in one of these states, and return them."""
        ...

    def listing(self, query: ListQuery) -> Page:
        """One page of the list."""
        ...

    def counts(self, owner: str | None) -> dict[State, int]:
        """How many sessions there are in each state, of one person or of all."""
        ...

    def owners(self) -> list[str]:
        """Everybody who has ever had a session."""
        ...


@dataclass(frozen=True)
class Placed:
    """Where an app is after a look for a place."""

    opened: OpenApp | None
    """None where no place was found, or somebody else took it at the same moment."""
    choice: Choice | None = None
    """None when another request was quicker, and nothing was changed."""
    keys: tuple[str, ...] = ()
    """Ways to where it was, which are to be shut."""


class AccessStore(Protocol):
    """Apps that are open, and who may reach them. Every method is one transaction.

    What takes something away returns the keys that HAProxy must forget, and keeps them until
    `are_shut` is told: a crash in between, or an HAProxy that does not answer, forgets none.
    """

    def place(
        self,
        session: str,
        seen: OpenApp | None,
        seeker: Seeker,
        choose: Callable[[Places], Choice],
        now: datetime,
        asked: str = "",
    ) -> Placed:
        """Give an app an origin, or another one, by what `choose` says of the places there are.

        Only where the app is still where it was `seen`. Moving drops its tickets and grants. A new
        app has its owner's answer from its first moment on: the worker may start it at once.
        Raises Conflict for a session that is over.
        """
        ...

    def ask_app(self, opened: OpenApp, asked: str) -> bool:
        """Keep what the owner answered; False when it is not the answer any more that was seen."""
        ...

    def reopen_app(self, opened: OpenApp) -> None:
        """Its owner has opened again what they had closed."""
        ...

    def image_apps(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The apps that administrators' sessions found in each image."""
        ...

    def note_image_apps(self, environment: str, version: str, apps: Sequence[str]) -> None:
        """Remember what an administrator's session found in its image."""
        ...

    def set_app(
        self,
        session: str,
        app: str,
        state: AppState,
        message: str,
        log: str,
        details: str | None = None,
    ) -> None:
        """Note what the runner says of an app; details stay when there are no new ones."""
        ...

    def app_starts(self, opened: OpenApp) -> bool:
        """Note that an app starts; False when that was with an answer that is not its own now."""
        ...

    def apps(self, session: str) -> list[OpenApp]:
        """All open apps of a session."""
        ...

    def apps_of(self, sessions: Collection[str]) -> list[OpenApp]:
        """All open apps of these sessions."""
        ...

    def app_by_label(self, label: str) -> OpenApp | None:
        """The app behind an origin."""
        ...

    def abandoned(self) -> list[str]:
        """Sessions that are over and still have apps: the portal ended in between."""
        ...

    def publish_app(self, opened: OpenApp, since: datetime) -> bool:
        """Open an app to everybody; False when it is not at this origin any more."""
        ...

    def add_ticket(self, ticket: Ticket, most: int) -> bool:
        """Remember a one-time ticket by its hash; of an app's tickets the newest `most` stay.

        Returns whether the login had no other ticket to the app.
        """
        ...

    def redeem(
        self, ticket_hash: str, label: str, cookie_hash: str, has: str, now: datetime, most: int
    ) -> Redeemed | None:
        """Exchange a ticket for a grant to what it was made for, and for its session's owner.

        None when it is unknown, spent, expired, or for what is not at this origin (any more).
        `has` is the hash of the browser's cookie, which stays where it is good for the same. Of
        an app's grants the newest `most` stay.
        """
        ...

    def entry(self, label: str, cookie_hash: str) -> Entrance | None:
        """The app at an origin and what a cookie is good for there; None where nothing is."""
        ...

    def grants(self, session: str | None = None) -> list[Grant]:
        """The grants of one session, or all; only those for what is at their origin now."""
        ...

    def make_private(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Open an app to its owner alone again; returns the keys to shut, whatever was stored."""
        ...

    def close_app(self, session: str, app: str, now: datetime) -> tuple[str, ...]:
        """Shut an app for everybody, its owner included; returns the keys to shut."""
        ...

    def close_session(self, session: str, now: datetime) -> tuple[str, ...]:
        """Forget all apps, tickets and grants of a session; returns the keys to shut."""
        ...

    def close_login(self, login: str, now: datetime) -> tuple[str, ...]:
        """Forget the tickets and grants of a login; returns the keys to shut."""
        ...

    def shutting(self) -> list[str]:
        """The keys that were taken away and that HAProxy may still know."""
        ...

    def are_shut(self, keys: Collection[str]) -> None:
        """HAProxy has forgotten these keys, and cut who was inside by them."""
        ...


class StatusStore(Protocol):
    """What the worker last learnt of the cluster."""

    def note_answer(self, now: datetime) -> None:
        """Slurm answered."""
        ...

    def note_failure(self, now: datetime, message: str) -> None:
        """Slurm did not answer; the first failure's time is kept."""
        ...

    def slurm_status(self) -> SlurmStatus:
        """When Slurm last answered."""
        ...

    def save_partitions(self, partitions: Sequence[Partition]) -> None:
        """Keep the partitions for everybody."""
        ...

    def partitions(self) -> list[Partition]:
        """The partitions as last read; [] before the first time."""
        ...

    def save_limits(self, limits: Limits) -> None:
        """Keep Slurm's limits for everybody."""
        ...

    def limits(self) -> Limits | None:
        """The limits as last read; None before the first time."""
        ...

    def save_use(self, use: Use) -> None:
        """Keep who holds what at this look."""
        ...

    def use(self) -> Use:
        """Who held what at the last look."""
        ...

    def save_measured(self, measured: Measured) -> None:
        """Keep what browsers had sent to the apps."""
        ...

    def measured(self) -> Measured | None:
        """What they had sent at the last measurement; None before the first one."""
        ...


class PresetStore(Protocol):
    """The presets' table. Every method is one transaction."""

    def all(self, owner: str) -> list[Preset]:
        """Somebody's presets, by name."""
        ...

    def get(self, owner: str, name: str) -> Preset | None:
        """One preset."""
        ...

    def save(self, owner: str, preset: Preset, replace: bool, most: int) -> Kept:
        """Keep it, unless its name is taken or there are `most` already; what became of it."""
        ...

    def rename(self, owner: str, name: str, to: str) -> Kept:
        """Give it another name, unless that one is taken; what became of it."""
        ...

    def remove(self, owner: str, name: str) -> bool:
        """Forget it; whether there was one."""
        ...
