"""What the story needs of the database; every method is one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol, Unpack

from portal.core.cluster.inventory import Partition
from portal.core.cluster.limits import Limits
from portal.core.cluster.usage import ClusterUsage, SlurmStatus
from portal.core.session.idle import TrafficSample
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

    def save_use(self, use: ClusterUsage) -> None:
        """Keep who holds what at this look."""
        ...

    def use(self) -> ClusterUsage:
        """Who held what at the last look."""
        ...

    def save_measured(self, measured: TrafficSample) -> None:
        """Keep what browsers had sent to the apps."""
        ...

    def measured(self) -> TrafficSample | None:
        """What they had sent at the last measurement; None before the first one."""
        ...
