"""Reads and ends sessions; launches are in launch/, Slurm's reports in reconciler.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock
from portal.core.session.ended_lately import LATELY, SHOWN, EndedLately, Notice
from portal.core.session.holders import NOTHING, Holdings, needs_holders
from portal.core.session.query import ListQuery, Page, count_tabs
from portal.core.session.relaunch import session_to_request_body
from portal.core.session.session import LIVE, OVER, Facts, Session
from portal.core.session.transitions import stop
from portal.errors import Conflict, NotFound
from portal.services.admin.administration import Administration
from portal.services.cluster import Cluster
from portal.services.job_control import JobControl
from portal.store.sessions import SessionStore


class Sessions:
    """The sessions that a user may see, and ending them."""

    def __init__(
        self,
        *,
        store: SessionStore,
        job_control: JobControl,
        administration: Administration,
        close_apps: Callable[[str], None],
        clock: Clock,
        cluster: Cluster,
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._job_control = job_control
        self._administration = administration
        self._close_apps = close_apps
        self._clock = clock

    # Reading

    def get(self, person: Person, session_id: str) -> Session:
        """The session, if this user may see it; else NotFound, whether or not it exists."""
        session = self._store.get(session_id)
        if session is None or not person.may_see(session):
            raise NotFound("There is no such session.")
        return session

    def get_many(self, person: Person, session_ids: Iterable[str]) -> list[Session]:
        """These sessions in this order, if this user may see all of them; else NotFound."""
        wanted = list(dict.fromkeys(session_ids))
        found = {s.id: s for s in self._store.get_many(wanted) if person.may_see(s)}
        if len(found) < len(wanted):
            one = "There is no such session."
            raise NotFound(one if len(wanted) == 1 else "Not all of these sessions exist.")
        return [found[session] for session in wanted]

    def names(self, person: Person, session_ids: Iterable[str]) -> dict[str, str]:
        """The names of those of these sessions that exist and that this user may see, by id."""
        found = self._store.get_many(list(session_ids))
        return {session.id: session.name for session in found if person.may_see(session)}

    def query(self, person: Person, query: ListQuery) -> Page:
        """One page of the sessions that this user may see."""
        if not person.admin and query.owner not in (None, person.name):
            return Page()  # the same response whether or not such a user has sessions
        return self._store.query(_of(person, query), self._clock())

    def counts(self, person: Person, query: ListQuery) -> dict[str, int]:
        """Number of sessions in each tab of this user's page that match the other filters."""
        return count_tabs(self._store.counts(_of(person, query), self._clock()))

    def owners(self, person: Person) -> list[str]:
        """Owners by which this user can filter; [] for users who see only their own sessions."""
        return self._store.owners() if person.admin else []

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
        """Dismiss a notice about a session of the user's own; idempotent.

        Raises NotFound, and Conflict for the notice of an end that has not happened.
        """
        session = self._own(person, session_id)
        if notice is Notice.MEMORY:
            # Not for a kill that was reported after this session was read.
            known = {"oom_kills": session.oom_kills}
            facts = Facts(oom_seen=session.oom_seen or self._clock())
            changed = self._store.change_if(session.id, LIVE | OVER, known, **facts)
        elif session.state not in OVER:
            raise Conflict("This session has not ended.")
        else:
            changed = self._store.change(
                session.id, OVER, end_seen=session.end_seen or self._clock()
            )
        return changed or self._own(person, session_id)

    def dismiss_ends(self, person: Person, until: datetime) -> int:
        """Dismiss the notices of all of the user's ends up to a time; returns how many."""
        return self._store.see_ends(person.name, until, self._clock())

    def _own(self, person: Person, session_id: str) -> Session:
        session = self._store.get(session_id)
        if session is None or session.owner != person.name:
            raise NotFound("There is no such session of yours.")
        return session

    def holdings(self, viewer: str, sessions: Iterable[Session]) -> Holdings:
        """What explains why these sessions wait; one query if other sessions may explain it.

        The viewer has to be allowed to see the sessions.
        """
        owners = {session.owner for session in sessions if needs_holders(session)}
        if not owners:
            return NOTHING
        found = self._store.holding(owners)
        cluster = self._cluster.look()
        return Holdings(cluster.limits, cluster.use, tuple(found), viewer)

    def clone_body(self, person: Person, session_id: str) -> dict[str, Any]:
        """The request body that clones a session of the user; raises NotFound, Conflict.

        For the owner only: it contains values of environment variables.
        """
        session = self._own(person, session_id)
        env = self._store.env(session.id)
        if session.env_names and not env:
            names = ", ".join(session.env_names)
            raise Conflict(
                f"The values of this session's variables ({names}) are deleted some time after "
                "its end. Start a new session and enter them again."
            )
        return session_to_request_body(session, env)

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
        wanted = [session.id for session in self.get_many(person, session_ids)]
        changed = self._store.apply_to_all(wanted, stop(person.name, self._clock(), reason))
        self._job_control.cancel(changed)
        lines = [(session.id, _description(person, session)) for session in changed]
        self._administration.record_all(person.name, "session.end", lines)
        for session in changed:
            self._close_apps(session.id)
        return self.get_many(person, wanted)


def _description(person: Person, session: Session) -> str:
    name = session.name if session.owner == person.name else f"{session.name} of {session.owner}"
    return f"{name}: {session.stop_reason}" if session.stop_reason else name


def _of(person: Person, query: ListQuery) -> ListQuery:
    owner = query.owner if person.admin else person.name
    return query.model_copy(update={"owner": owner})
