"""What can be done for a session that Slurm has: more time, an end to a hold, keeping it unused."""

from __future__ import annotations

from datetime import timedelta

from portal.administration import Administration
from portal.core.access import Person
from portal.core.bounds import Group
from portal.core.job import JobReport, JobState
from portal.core.offer import groups_of
from portal.core.policy import group_for
from portal.core.ports import Clock, Scheduler
from portal.core.session import OVER, Session, State
from portal.core.stores import SessionStore, StatusStore
from portal.core.view import shown_limit
from portal.errors import Conflict, FieldError, InvalidRequest, Unavailable

_ADMIN_HOLD = "An administrator holds it. Ask the administrators."


class Tending:
    """Extends, releases, keeps; whoever calls has made sure that the person may see the session."""

    def __init__(
        self,
        *,
        store: SessionStore,
        status: StatusStore,
        scheduler: Scheduler,
        administration: Administration,
        clock: Clock,
        extend_minutes: int,
    ) -> None:
        self._store = store
        self._status = status
        self._scheduler = scheduler
        self._administration = administration
        self._clock = clock
        self._usual = extend_minutes

    def extend(self, person: Person, session: Session, minutes: int | None) -> Session:
        """Give a running session more time: `minutes`, or the usual span as far as it goes.

        Never beyond what its owner could have asked for. Raises Conflict, InvalidRequest,
        Unavailable.
        """
        if not self._scheduler.may_extend:
            raise Conflict("Time cannot be extended here. Ask the administrators.")
        report = self._running_job(session)
        if report.time_limit is None:
            raise Conflict("This session has no time limit.")
        group = self._group(session.owner, report.partition)
        room = _room(group, report.time_limit)
        wanted = minutes or self._usual
        if minutes is None and room is not None:
            wanted = min(wanted, max(room, 0))
        if wanted < 1 or (room is not None and wanted > room):
            raise InvalidRequest([FieldError("minutes", _too_much(group, room or 0))])
        limit = report.time_limit + wanted
        self._scheduler.extend(report.job_id, limit)
        changes = {"deadline": report.start + timedelta(minutes=limit)} if report.start else {}
        changed = self._store.change(session.id, {State.RUNNING}, **changes) if changes else None
        self._administration.note(person.name, "session.extend", session.id, f"{wanted} minutes")
        return changed or session

    def _running_job(self, session: Session) -> JobReport:
        if session.state is State.RUNNING:
            for report in self._scheduler.find(session.id, session.owner):
                if report.job_id == session.job_id and report.state is JobState.RUNNING:
                    return report
        raise Conflict("Only a running session can be given more time.")

    def _group(self, owner: str, partition: str | None) -> Group:
        groups = groups_of(self._status, owner)
        if groups is None:
            raise Unavailable("Slurm's limits are not known yet. Try again in a minute.")
        found = group_for(partition, groups)
        if not isinstance(found, Group):
            raise Conflict("Its owner may not use this resource group any more.")
        return found

    def extension(self, session: Session) -> int:
        """How many minutes more the usual extension would give now; 0 when there is none."""
        limit = shown_limit(session)
        if not self._scheduler.may_extend or session.state is not State.RUNNING or limit is None:
            return 0
        try:
            room = _room(self._group(session.owner, session.partition), limit)
        except (Conflict, Unavailable):
            return 0
        return self._usual if room is None else max(min(self._usual, room), 0)

    def release(self, person: Person, session: Session) -> Session:
        """Take the owner's own hold away; a session that is not held stays as it is."""
        if session.state is not State.PENDING or session.job_id is None:
            return session
        if session.pending_reason == "JobHeldAdmin":
            raise Conflict(_ADMIN_HOLD)
        if session.pending_reason != "JobHeldUser":
            return session
        self._scheduler.release(session.owner, session.job_id)
        changed = self._store.change(session.id, {State.PENDING}, pending_reason=None)
        self._administration.note(person.name, "session.release", session.id)
        return changed or session

    def keep(self, person: Person, session: Session) -> Session:
        """Count as use of a session, so that a rule about unused ones does not end it now.

        One that does not run yet stays as it is. Raises Conflict for one that is over.
        """
        if session.state in OVER or session.state is State.ENDING:
            raise Conflict("This session is over. Launch it again.")
        changed = self._store.change(session.id, {State.RUNNING}, last_used=self._clock())
        if changed is not None:
            self._administration.note(person.name, "session.keep", session.id, session.name)
        return changed or session


def _room(group: Group, limit: int) -> int | None:
    """Minutes between a time limit and the most that its owner may ask for; None for no bound."""
    return None if group.max_minutes is None else group.max_minutes - limit


def _too_much(group: Group, room: int) -> str:
    whose = group.too_much("time")
    return f"{whose}; it can get {room} more" if room > 0 else f"{whose}, and it has them already"
