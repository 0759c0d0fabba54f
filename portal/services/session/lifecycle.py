"""Actions on submitted sessions: extend the time limit, release a hold, reset the idle timer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta

from portal.core.auth.person import Person
from portal.core.cluster.effective_limits import UserPartition
from portal.core.cluster.extensions import Extensions, extensions
from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.interfaces.systems import Clock, Scheduler
from portal.core.policy import group_for
from portal.core.session.session import LIVE, OVER, Session, State
from portal.core.session.status import shown_limit
from portal.errors import Conflict, Unavailable
from portal.services.admin.administration import Administration
from portal.services.cluster import Cluster
from portal.services.extending import LEASE, LIMITS_UNKNOWN, Extender, Minutes, room_in
from portal.store.sessions import SessionStore

_ONLY_RUNNING = "Only a running session can be given more time."
_ADMIN_HOLD = "An administrator holds it. Ask the administrators."


class Lifecycle:
    """Extends, releases and keeps alive sessions that the user may see (else NotFound)."""

    def __init__(
        self,
        *,
        get_session: Callable[[Person, str], Session],
        store: SessionStore,
        cluster: Cluster,
        scheduler: Scheduler,
        administration: Administration,
        clock: Clock,
        extend_minutes: int,
    ) -> None:
        self._get_session = get_session
        self._store = store
        self._cluster = cluster
        self._scheduler = scheduler
        self._administration = administration
        self._clock = clock
        self._default = extend_minutes
        self._extender = Extender("session", cluster, scheduler, clock)

    def extend(self, person: Person, session_id: str, minutes: Minutes = None) -> Session:
        """Extend a running session's time limit by `minutes`, by as much as the limits permit
        ("max"), or by the default as far as they permit.

        Never beyond the limits of the job's account, QOS and partition. Concurrent requests are
        serialised across all processes. Raises Conflict, InvalidRequest, Unavailable.
        """
        session = self._get_session(person, session_id)
        if not self._scheduler.may_extend:
            raise Conflict("Time cannot be extended here. Ask the administrators.")
        with self._alone(session) as started:
            return self._extend(person, session, minutes, started)

    def _extend(
        self,
        person: Person,
        session: Session,
        minutes: Minutes,
        started: datetime,
    ) -> Session:
        report = self._running_job(session)
        added = self._extender.extend(
            report, minutes, self._default, started, lambda: self._running_job(session).time_limit
        )
        changed = None
        if report.start and report.time_limit:
            deadline = report.start + timedelta(minutes=report.time_limit + added)
            changed = self._store.change(session.id, {State.RUNNING}, deadline=deadline)
        self._administration.record(person.name, "session.extend", session.id, f"{added} minutes")
        return changed or session

    def _alone(self, session: Session) -> AbstractContextManager[datetime]:
        """Hold the session's lock across all processes; yields its start. Raises Conflict."""

        def release_lock(started: datetime) -> None:
            self._store.change_if(session.id, LIVE | OVER, {"extending": started}, extending=None)

        return self._extender.alone(session.id, lambda: self._claim(session.id), release_lock)

    def _claim(self, session_id: str) -> datetime | None:
        stored, now = self._store.get(session_id), self._clock()
        if stored is None or stored.state is not State.RUNNING:
            raise Conflict(_ONLY_RUNNING)
        if stored.extending is not None and now - stored.extending <= LEASE:
            return None
        unchanged = {"extending": stored.extending}
        changed = self._store.change_if(session_id, {State.RUNNING}, unchanged, extending=now)
        return now if changed else None

    def _running_job(self, session: Session) -> JobReport:
        if session.state is State.RUNNING:
            for report in self._scheduler.find(session.id, session.owner):
                if report.job_id == session.job_id and report.state is JobState.RUNNING:
                    return report
        raise Conflict(_ONLY_RUNNING)

    def _partition(self, session: Session) -> UserPartition:
        partitions = self._cluster.look().partitions_for(session.owner, session.slurm)
        if partitions is None:
            raise Unavailable(LIMITS_UNKNOWN)
        partition = group_for(session.partition, partitions)
        if not isinstance(partition, UserPartition):
            raise Conflict("Its owner may no longer use this resource group.")
        return partition

    def next_extension(self, session: Session) -> int:
        """Minutes that the default extension would add now; 0 if it cannot be extended."""
        room = self.room(session)
        return self._default if room is None else min(self._default, room)

    def room(self, session: Session) -> int | None:
        """Minutes by which it can be extended now; None without a limit, 0 if it cannot be."""
        limit = shown_limit(session)
        if not self._scheduler.may_extend or session.state is not State.RUNNING or limit is None:
            return 0
        try:
            room = room_in(self._partition(session), limit)
        except (Conflict, Unavailable):
            return 0
        return None if room is None else max(room, 0)

    def extensions(
        self, session: Session, groups: Sequence[UserPartition] | None = None
    ) -> Extensions:
        """The possible extensions of a running session; none for others.

        `groups` are the partitions of its owner, if they have been read already.
        """
        limit = shown_limit(session)
        if session.state is not State.RUNNING or limit is None:
            return Extensions()
        if not self._scheduler.may_extend:
            return Extensions(why="Time cannot be extended here.")
        groups = (
            self._cluster.look().partitions_for(session.owner, session.slurm)
            if groups is None
            else groups
        )
        group = group_for(session.partition, groups or [])
        if not isinstance(group, UserPartition):
            return Extensions()
        return extensions(room_in(group, limit), group.too_much("time"))

    def release(self, person: Person, session_id: str) -> Session:
        """Release the owner's own hold; a session that is not held is unchanged."""
        session = self._get_session(person, session_id)
        if session.state is not State.PENDING or session.job_id is None:
            return session
        if session.pending_reason == "JobHeldAdmin":
            raise Conflict(_ADMIN_HOLD)
        if session.pending_reason != "JobHeldUser":
            return session
        self._scheduler.release(session.owner, session.job_id)
        # Only one of several concurrent requests finds the hold stored and is recorded.
        hold = {"pending_reason": session.pending_reason}
        changed = self._store.change_if(session.id, {State.PENDING}, hold, pending_reason=None)
        if changed is not None:
            self._administration.record(person.name, "session.release", session.id)
        return changed or self._store.get(session.id) or session

    def keep_alive(self, person: Person, session_id: str) -> Session:
        """Reset a session's idle timer, so that it is not ended as unused.

        A session that is not running yet is unchanged. Raises Conflict for one that is over.
        """
        session = self._get_session(person, session_id)
        if session.state in OVER or session.state is State.ENDING:
            raise Conflict("This session is over. Launch it again.")
        changed = self._store.change(session.id, {State.RUNNING}, last_used=self._clock())
        if changed is not None:
            self._administration.record(person.name, "session.keep", session.id, session.name)
            return changed
        current = self._store.get(session.id) or session
        if current.state in OVER or current.state is State.ENDING:  # ended concurrently
            raise Conflict("This session is over. Launch it again.")
        return current
