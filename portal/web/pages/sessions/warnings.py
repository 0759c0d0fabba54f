"""The warnings above the list: sessions that end soon, and unused sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from flask import Flask, request

from portal.core.cluster.effective_limits import UserPartition
from portal.core.cluster.extensions import Extensions
from portal.core.files.in_session import location_of
from portal.core.session.ended_lately import (
    Shortage,
    how_it_ended,
    kept_text,
    shortage,
    shows_memory_kill,
    why_it_ended,
)
from portal.core.session.idle import IdleNotice, idle_notice, warning_span
from portal.core.session.retention import retention
from portal.core.session.session import Session, State
from portal.core.session.status import ENDS_SOON, ends_soon, next_change
from portal.core.slurm_options import SlurmOptions
from portal.errors import NotFound
from portal.web.context import cluster_view, person, services, shown_until, site_rules


@dataclass(frozen=True)
class EndingSession:
    """A session that ends soon, and its possible extensions."""

    session: Session
    extensions: Extensions


def ending_sessions() -> list[EndingSession]:
    """The current user's sessions that end soon, soonest first."""
    sessions = services().sessions.ending(person(), services().clock() + ENDS_SOON)
    return [EndingSession(session, extensions_of(session)) for session in sessions]


def extensions_of(session: Session) -> Extensions:
    """The possible extensions of a session."""
    groups = _groups_of(session) if session.state is State.RUNNING else []
    return services().lifecycle.extensions(session, groups)


def _groups_of(session: Session) -> list[UserPartition]:
    """The resource group of a session, for its owner with the session's own account and QOS."""
    options = SlurmOptions(session.account, session.qos)  # the limits depend on nothing else
    return cluster_view().partitions_for(session.owner, options, session.partition) or []


def just_extended() -> Session | None:
    """The session that was extended before the redirect to this page, if it still runs."""
    session_id = request.args.get("extended", "")
    try:
        session = services().sessions.get(person(), session_id) if session_id else None
    except NotFound:
        return None
    return session if session and session.state is State.RUNNING and session.deadline else None


def is_ending(session: Session) -> bool:
    """Whether to warn that this session ends soon."""
    return ends_soon(session, services().clock())


def unused_sessions() -> list[tuple[Session, IdleNotice]]:
    """The current user's unused sessions that will be ended soon, soonest first."""
    rules = site_rules()
    if rules.idle_minutes is None:
        return []
    span = timedelta(minutes=rules.idle_minutes) - warning_span(rules)
    sessions = services().sessions.unused(person(), services().clock() - span)
    notices = [(session, unused_of(session)) for session in sessions]
    warned = [(session, idle) for session, idle in notices if idle is not None and idle.warned]
    return sorted(warned, key=lambda item: (item[1].ends, item[0].id))


def unused_of(session: Session) -> IdleNotice | None:
    """The notice of an unused session; None for others."""
    return idle_notice(session, site_rules(), services().clock())


def shown_until_next_change(sessions: Iterable[Session]) -> None:
    """Note for this poll when these sessions are shown differently although nothing is stored."""
    now = services().clock()
    for session in sessions:
        if session.state is State.RUNNING:
            shown_until(next_change(session, site_rules(), now))


@dataclass(frozen=True)
class EndedSession:
    """An ended session, for its owner."""

    session: Session

    @property
    def how(self) -> str:
        """How it ended, as a phrase that follows its name."""
        return how_it_ended(self.session)

    @property
    def why(self) -> str:
        """The explanation; "" if the cause is sufficient."""
        return why_it_ended(self.session)

    @property
    def kept(self) -> str:
        """The files and folders that were kept, in words."""
        return kept_text(self.session)

    @property
    def lacking(self) -> str:
        """The resource to increase in a new launch, within the limits: "time", "memory" or ""."""
        resource = shortage(self.session)
        return resource if resource and _propose(self.session, resource) else ""


@dataclass(frozen=True)
class EndedList:
    """The ends that the current user has neither requested nor dismissed."""

    shown: list[EndedSession]
    unlisted: int
    """The number of further ends."""
    until: str
    """The time of the newest end, for dismissing all of them."""


def ended_lately() -> EndedList:
    """The current user's ends of the last day, newest first."""
    ended = services().sessions.ended_lately(person())
    newest = next((s.ended.isoformat() for s in ended.sessions if s.ended), "")
    return EndedList([EndedSession(session) for session in ended.sessions], ended.hidden, newest)


def larger_memory(session: Session) -> int | None:
    """The memory in MiB to propose after a process ran out of memory; None if at the limit."""
    return _propose(session, Shortage.MEMORY)


def _propose(session: Session, resource: Shortage) -> int | None:
    return services().sessions.enlargement(session, resource, _groups_of(session))


def install(app: Flask) -> None:
    """Make these functions available to the templates."""
    app.jinja_env.globals.update(
        ending_sessions=ending_sessions,
        is_ending=is_ending,
        ended_lately=ended_lately,
        larger_memory=larger_memory,
        shows_memory_kill=shows_memory_kill,
        unused_sessions=unused_sessions,
        unused_of=unused_of,
        kept=retention,
        extensions_of=extensions_of,
        just_extended=just_extended,
        location_of=location_of,
    )
