"""Reads and ends sessions; launches are in launch/, Slurm's reports in reconciler.py."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from portal.core.admin.timeline import EVENTS, Moment, timeline
from portal.core.auth.person import Person
from portal.core.cluster.effective_limits import UserPartition
from portal.core.interfaces.systems import Clock
from portal.core.policy import group_for
from portal.core.session.ended_lately import (
    LATELY,
    SHOWN,
    EndedLately,
    Notice,
    Shortage,
    larger,
    longer,
)
from portal.core.session.holders import NOTHING, Holdings, needs_holders
from portal.core.session.query import ListQuery, Page, count_tabs
from portal.core.session.relaunch import session_to_request_body
from portal.core.session.session import LIVE, OVER, Facts, Session
from portal.core.session.transitions import stop
from portal.core.session_job.samples import Point, at_most, to_points
from portal.core.units import format_size
from portal.errors import Conflict, NotFound
from portal.services.admin.administration import Administration
from portal.services.cluster import Cluster
from portal.services.teardown import Teardown
from portal.store.samples import SampleStore
from portal.store.sessions import SessionStore

MOST_EVENTS = 200
"""Events of one session's timeline, the newest ones."""


class Sessions:
    """The sessions that a user may see, and ending them."""

    def __init__(
        self,
        *,
        store: SessionStore,
        samples: SampleStore,
        teardown: Teardown,
        administration: Administration,
        clock: Clock,
        cluster: Cluster,
    ) -> None:
        self._store = store
        self._samples = samples
        self._teardown = teardown
        self._administration = administration
        self._clock = clock
        self._cluster = cluster

    # Reading

    def get(self, person: Person, session_id: str) -> Session:
        """The session, if this user may see it; else NotFound, whether or not it exists."""
        session = self._store.get(session_id)
        if session is None or not person.may_see(session):
            raise NotFound("There is no such session.")
        return session

    def get_many(self, person: Person, session_ids: Iterable[str]) -> list[Session]:
        """These sessions in this order, if this user may see all of them; else NotFound."""
        ids = list(dict.fromkeys(session_ids))
        by_id = {s.id: s for s in self._store.get_many(ids) if person.may_see(s)}
        if len(by_id) < len(ids):
            text = "There is no such session."
            raise NotFound(text if len(ids) == 1 else "Not all of these sessions exist.")
        return [by_id[session] for session in ids]

    def names(self, person: Person, session_ids: Iterable[str]) -> dict[str, str]:
        """Names by id of the sessions that exist and that this user may see."""
        sessions = self._store.get_many(list(session_ids))
        return {session.id: session.name for session in sessions if person.may_see(session)}

    def query(self, person: Person, query: ListQuery) -> Page:
        """One page of the sessions that this user may see."""
        if not person.admin and query.owner not in (None, person.name):
            return Page()  # the same response whether or not such a user has sessions
        return self._store.query(_of(person, query), self._clock())

    def counts(self, person: Person, query: ListQuery) -> dict[str, int]:
        """Number of sessions in each tab of this user's page that match the other filters."""
        return count_tabs(self._store.counts(_of(person, query), self._clock()))

    def owners(self, person: Person, most: int) -> list[str]:
        """At most `most` owners to filter by; [] for users who see only their own sessions."""
        return self._store.owners(most) if person.admin else []

    def use_over_time(self, person: Person, session_id: str, count: int) -> list[Point]:
        """Use over time in at most `count` points, oldest first; raises NotFound."""
        session = self.get(person, session_id)
        samples = at_most(self._samples.samples(session.id), count)
        return to_points(samples, session.started, session.cpus)

    def timeline(self, person: Person, session_id: str) -> list[Moment]:
        """The events of a session, oldest first; raises NotFound."""
        session = self.get(person, session_id)
        events = self._administration.events_of(session.id, EVENTS, MOST_EVENTS)
        return timeline(session, events)

    def ending(self, person: Person, before: datetime) -> list[Session]:
        """The user's running sessions with a deadline before a time, soonest first."""
        return self._store.ending(person.name, before)

    def unused(self, person: Person, since: datetime) -> list[Session]:
        """The user's running sessions that have been unused since a time, in any order."""
        return self._store.unused(person.name, since)

    def ended_lately(self, person: Person) -> EndedLately:
        """The user's ends within LATELY that they neither requested nor dismissed."""
        return self._store.ended_unseen(person.name, self._clock() - LATELY, SHOWN)

    def dismiss(self, person: Person, session_id: str, notice: Notice) -> Session:
        """Dismiss a notice about one of the user's own sessions; idempotent.

        Raises NotFound, and Conflict for the notice of an end that has not happened.
        """
        session = self._get_own(person, session_id)
        if notice is Notice.MEMORY:
            # Not for a kill that was reported after this session was read.
            unchanged = {"oom_kills": session.oom_kills}
            facts = Facts(oom_seen=session.oom_seen or self._clock())
            changed = self._store.change_if(session.id, LIVE | OVER, unchanged, **facts)
        elif session.state not in OVER:
            raise Conflict("This session has not ended.")
        else:
            changed = self._store.change(
                session.id, OVER, end_seen=session.end_seen or self._clock()
            )
        return changed or self._get_own(person, session_id)

    def dismiss_ends(self, person: Person, until: datetime) -> int:
        """Dismiss the notices of all of the user's ends up to a time; returns how many."""
        return self._store.see_ends(person.name, until, self._clock())

    def _get_own(self, person: Person, session_id: str) -> Session:
        session = self._store.get(session_id)
        if session is None or session.owner != person.name:
            raise NotFound("There is no such session of yours.")
        return session

    def holdings(self, viewer: str, sessions: Iterable[Session]) -> Holdings:
        """The sessions and limits that may explain why these sessions wait; reads only if needed.

        The viewer must be permitted to see the sessions.
        """
        owners = {session.owner for session in sessions if needs_holders(session)}
        if not owners:
            return NOTHING
        holders = self._store.holding(owners)
        cluster = self._cluster.look()
        return Holdings(cluster.limits, cluster.use, tuple(holders), viewer)

    # Launching again

    def clone_body(self, person: Person, session_id: str) -> dict[str, Any]:
        """The request body that clones a session of the user; raises NotFound, Conflict.

        For the owner only: it contains values of environment variables.
        """
        session = self._get_own(person, session_id)
        env = self._store.env(session.id)
        if session.env_names and not env:
            names = ", ".join(session.env_names)
            raise Conflict(
                f"The values of this session's variables ({names}) are deleted some time after "
                "its end. Start a new session and enter them again."
            )
        return session_to_request_body(session, env)

    def enlargement(
        self, session: Session, resource: Shortage, groups: Sequence[UserPartition] | None = None
    ) -> int | None:
        """Minutes of a longer time limit, or MiB of more memory; None if it had the maximum.

        Twice as much, as far as its owner's limits permit. `groups` are the partitions of its
        owner, if they have been read already.
        """
        if groups is None:
            groups = self._cluster.look().partitions_for(session.owner, session.slurm) or []
        group = group_for(session.partition, groups)
        partition = group if isinstance(group, UserPartition) else None
        if resource is Shortage.TIME:
            return longer(session, partition.max_minutes if partition else None)
        return larger(session, partition.max_memory_mb if partition else None)

    def enlarged(
        self, body: dict[str, Any], session: Session, resource: Shortage
    ) -> dict[str, Any]:
        """The request body of a session's copy with more time or memory, if that is possible."""
        amount = self.enlargement(session, resource)
        if amount is None:
            return body
        if resource is Shortage.TIME:
            return body | {"time_limit": amount}
        return body | {"resources": body["resources"] | {"memory": format_size(amount)}}

    # Ending

    def stop(self, person: Person, session_id: str) -> Session:
        """End a session in any state; idempotent."""
        return self.stop_all(person, [session_id])[0]

    def stop_all(
        self, person: Person, session_ids: Iterable[str], reason: str = ""
    ) -> list[Session]:
        """End sessions in any state; those that are over are unchanged. `reason` is for owners.

        They are marked in one transaction before their jobs are cancelled: if Slurm does not
        answer or the portal crashes, the reconciler cancels the jobs.
        """
        ids = [session.id for session in self.get_many(person, session_ids)]
        changed = self._store.apply_to_all(ids, stop(person.name, self._clock(), reason))
        self._teardown.cancel(changed)
        lines = [(session.id, _description(person, session)) for session in changed]
        self._administration.record_all(person.name, "session.end", lines)
        for session in changed:
            self._teardown.close_apps(session.id)
        return self.get_many(person, ids)


def _description(person: Person, session: Session) -> str:
    name = session.name if session.owner == person.name else f"{session.name} of {session.owner}"
    return f"{name}: {session.stop_reason}" if session.stop_reason else name


def _of(person: Person, query: ListQuery) -> ListQuery:
    owner = query.owner if person.admin else person.name
    return query.model_copy(update={"owner": owner})
