"""What the story needs of the database; every method is one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from portal.core.access import AppState, Grant, OpenApp, Ticket
from portal.core.idle import Measured
from portal.core.job import Partition
from portal.core.limits import Limits
from portal.core.listing import ListQuery, Page
from portal.core.origins import PortUse
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


class AccessStore(Protocol):
    """Apps that are open, and who may reach them."""

    def want_app(self, session: str, app: str, label: str) -> OpenApp | None:
        """The app's entry, made if there is none (then with this label).

        None when another app has the label.
        """
        ...

    def label_app(self, session: str, app: str, label: str) -> bool:
        """Give the app another label; False when another app has it."""
        ...

    def publish_app(self, session: str, app: str, since: datetime | None) -> None:
        """Open an app to everybody, or to its owner alone again."""
        ...

    def shut_app(self, session: str, app: str, shut: bool) -> None:
        """Note whether its owner has closed the app."""
        ...

    def ask_app(self, session: str, app: str, asked: str) -> None:
        """Keep what the owner answered."""
        ...

    def labels(self) -> set[str]:
        """The labels that are in use."""
        ...

    def port_uses(self) -> dict[int, PortUse]:
        """Who had each port last."""
        ...

    def note_port(self, port: int, owner: str, now: datetime) -> None:
        """Remember who has a port."""
        ...

    def image_apps(self) -> dict[tuple[str, str], tuple[str, ...]]:
        """The apps that sessions found in each image, by environment and version."""
        ...

    def note_image_apps(self, environment: str, version: str, apps: Sequence[str]) -> None:
        """Remember what a session found in its image."""
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

    def apps(self, session: str) -> list[OpenApp]:
        """All open apps of a session."""
        ...

    def apps_of(self, sessions: Collection[str]) -> list[OpenApp]:
        """All open apps of these sessions."""
        ...

    def app_by_label(self, label: str) -> OpenApp | None:
        """The app behind an origin."""
        ...

    def add_ticket(self, ticket: Ticket) -> None:
        """Remember a one-time ticket by its hash."""
        ...

    def take_ticket(self, ticket_hash: str, label: str, now: datetime) -> Ticket | None:
        """Use up a ticket; None when it is unknown, spent, expired or for another origin."""
        ...

    def add_grant(self, grant: Grant) -> None:
        """Remember that a browser may use an app."""
        ...

    def grant(self, label: str, cookie_hash: str) -> Grant | None:
        """The grant behind a cookie at an origin."""
        ...

    def grants(self, session: str | None = None, login: str | None = None) -> list[Grant]:
        """All grants, or those of one session or one login."""
        ...

    def drop_grants(self, grants: Sequence[Grant]) -> None:
        """Forget grants."""
        ...

    def close_session(self, session: str) -> None:
        """Forget all apps, tickets and grants of a session."""
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
