"""Actions on submitted sessions: extend the time limit, release a hold, reset the idle timer."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Literal

from portal.core.auth.person import Person
from portal.core.cluster.effective_limits import UserPartition, partition_of_job
from portal.core.cluster.extensions import Extensions, extensions
from portal.core.cluster.jobs import JobReport, JobState
from portal.core.interfaces.sessions import SessionStore
from portal.core.interfaces.systems import Clock, Scheduler
from portal.core.policy import group_for
from portal.core.session.session import LIVE, OVER, Session, State
from portal.core.session.status import shown_limit
from portal.core.units import short_minutes
from portal.errors import Conflict, FieldError, InvalidRequest, OutcomeUnknown, Unavailable
from portal.services.admin.administration import Administration
from portal.services.cluster import Cluster

LEASE = timedelta(seconds=120)
"""Maximum duration of one extension's lock: longer than Slurm's answers can take, so that it
expires only after a crash."""
IN_TIME = timedelta(seconds=60)
"""How long after its start an extension may still change the limit."""
PATIENCE = 3.0
"""Seconds that an extension waits for another one of the same session."""
PAUSE = 0.05
MOST_WAITING = 3
"""Extensions of one session that may wait in one process, since each holds a thread."""
_ONLY_RUNNING = "Only a running session can be given more time."
_AT_ONCE = "This session is being extended right now. Check its time limit, then try again."
_LIMITS_UNKNOWN = "Slurm's limits are not known yet. Try again in a minute."
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
        self._usual = extend_minutes
        self._waiting: Counter[str] = Counter()
        self._lock = threading.Lock()

    def extend(
        self, person: Person, session_id: str, minutes: int | Literal["max"] | None = None
    ) -> Session:
        """Extend a running session's time limit by `minutes`, by as much as the limits permit
        ("max"), or by the default as far as they permit.

        Never beyond what the job's account, QOS and partition permit its owner. Concurrent
        requests are serialised across all processes. Raises Conflict, InvalidRequest, Unavailable.
        """
        session = self._get_session(person, session_id)
        if not self._scheduler.may_extend:
            raise Conflict("Time cannot be extended here. Ask the administrators.")
        with self._alone(session) as begun:
            return self._extend(person, session, minutes, begun)

    def _extend(
        self,
        person: Person,
        session: Session,
        minutes: int | Literal["max"] | None,
        begun: datetime,
    ) -> Session:
        report = self._running_job(session)
        if report.time_limit is None:
            raise Conflict("This session has no time limit.")
        group = self._group_of_job(session.owner, report)
        room = _room(group, report.time_limit)
        wanted = _wanted(minutes, room, self._usual)
        if wanted < 1 or (room is not None and wanted > room):
            raise InvalidRequest([FieldError("minutes", _too_much(group, room or 0))])
        limit = report.time_limit + wanted
        if self._clock() - begun > IN_TIME:
            raise Unavailable("Slurm took too long, so nothing was changed. Try again in a minute.")
        self._set_limit(session, report.job_id, limit)
        changed = None
        if report.start:
            deadline = report.start + timedelta(minutes=limit)
            changed = self._store.change(session.id, {State.RUNNING}, deadline=deadline)
        self._administration.record(person.name, "session.extend", session.id, f"{wanted} minutes")
        return changed or session

    @contextmanager
    def _alone(self, session: Session) -> Iterator[datetime]:
        """Hold the session's lock across all processes; yields its start. Raises Conflict."""
        with self._lock:
            if self._waiting[session.id] >= MOST_WAITING:
                raise Conflict(_AT_ONCE)
            self._waiting[session.id] += 1
        try:
            begun = self._claim(session.id, time.monotonic() + PATIENCE)
            try:
                yield begun
            finally:
                self._store.change_if(session.id, LIVE | OVER, {"extending": begun}, extending=None)
        finally:
            with self._lock:
                self._waiting[session.id] -= 1
                self._waiting += Counter()  # drops zero counts

    def _claim(self, session_id: str, deadline: float) -> datetime:
        while True:
            known, now = self._store.get(session_id), self._clock()
            if known is None or known.state is not State.RUNNING:
                raise Conflict(_ONLY_RUNNING)
            if known.extending is None or now - known.extending > LEASE:
                as_known = {"extending": known.extending}
                if self._store.change_if(session_id, {State.RUNNING}, as_known, extending=now):
                    return now
            if time.monotonic() > deadline:
                raise Conflict(_AT_ONCE)
            time.sleep(PAUSE)

    def _set_limit(self, session: Session, job_id: str, limit: int) -> None:
        try:
            self._scheduler.extend(job_id, limit)
        except OutcomeUnknown:
            # Whether the command took effect is visible in Slurm.
            if self._running_job(session).time_limit != limit:
                raise

    def _running_job(self, session: Session) -> JobReport:
        if session.state is State.RUNNING:
            for report in self._scheduler.find(session.id, session.owner):
                if report.job_id == session.job_id and report.state is JobState.RUNNING:
                    return report
        raise Conflict(_ONLY_RUNNING)

    def _group_of_job(self, owner: str, report: JobReport) -> UserPartition:
        """The bounds of the job itself: its submitter may have chosen any account and QOS."""
        known, limits = self._cluster.partitions(), self._cluster.limits()
        partition = next((p for p in known if p.name == report.partition), None)
        if limits is None or partition is None:
            raise Unavailable(_LIMITS_UNKNOWN)
        found = partition_of_job(owner, partition, report, limits)
        if found is None:
            raise Conflict(
                f"Slurm has this session with the QOS {report.qos or '(none)'} and the account "
                f"{report.account or '(none)'} in {report.partition}. Its owner is not known to be "
                "allowed to use them, so it cannot be extended. Ask the administrators."
            )
        return found

    def _partition(self, owner: str, partition: str | None) -> UserPartition:
        partitions = self._cluster.partitions_for(owner)
        if partitions is None:
            raise Unavailable(_LIMITS_UNKNOWN)
        found = group_for(partition, partitions)
        if not isinstance(found, UserPartition):
            raise Conflict("Its owner may no longer use this resource group.")
        return found

    def next_extension(self, session: Session) -> int:
        """Minutes that the default extension would add now; 0 if it cannot be extended."""
        room = self.room(session)
        return self._usual if room is None else min(self._usual, room)

    def room(self, session: Session) -> int | None:
        """Minutes by which it can be extended now; None without a limit, 0 for not at all."""
        limit = shown_limit(session)
        if not self._scheduler.may_extend or session.state is not State.RUNNING or limit is None:
            return 0
        try:
            room = _room(self._partition(session.owner, session.partition), limit)
        except (Conflict, Unavailable):
            return 0
        return None if room is None else max(room, 0)

    def extensions(
        self, session: Session, groups: Sequence[UserPartition] | None = None
    ) -> Extensions:
        """By how much a running session can be extended now; nothing for others.

        `groups` are the partitions of its owner, if they have been read already.
        """
        limit = shown_limit(session)
        if session.state is not State.RUNNING or limit is None:
            return Extensions()
        if not self._scheduler.may_extend:
            return Extensions(why="Time cannot be extended here.")
        groups = self._cluster.partitions_for(session.owner) if groups is None else groups
        group = group_for(session.partition, groups or [])
        if not isinstance(group, UserPartition):
            return Extensions()
        return extensions(_room(group, limit), group.too_much("time"))

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
        held = {"pending_reason": session.pending_reason}
        changed = self._store.change_if(session.id, {State.PENDING}, held, pending_reason=None)
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
        now = self._store.get(session.id) or session
        if now.state in OVER or now.state is State.ENDING:  # ended concurrently
            raise Conflict("This session is over. Launch it again.")
        return now


def _room(group: UserPartition, limit: int) -> int | None:
    """Minutes between a time limit and the most that its owner may request; None if unlimited."""
    return None if group.max_minutes is None else group.max_minutes - limit


def _wanted(minutes: int | Literal["max"] | None, room: int | None, usual: int) -> int:
    if minutes is None:
        return usual if room is None else min(usual, max(room, 0))
    if isinstance(minutes, int):
        return minutes
    if room is None:
        text = "nothing limits the time of this session; say how many minutes"
        raise InvalidRequest([FieldError("minutes", text)])
    return room


def _too_much(group: UserPartition, room: int) -> str:
    limit = group.too_much("time")
    more = f"it can get {short_minutes(room)} more" if room > 0 else "it has them already"
    return f"{limit}; {more}"
