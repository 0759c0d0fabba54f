"""The warnings above the list: sessions that end soon, and unused sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from flask import Flask, g, request

from portal.core.cluster.effective_limits import UserPartition
from portal.core.cluster.extensions import Extensions
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
from portal.core.session.status import ENDS_SOON, ends_soon
from portal.core.slurm_options import SlurmOptions
from portal.errors import NotFound
from portal.web.context import cluster_view, person, services, site_rules


@dataclass(frozen=True)
class EndingSession:
    """A session that ends soon, and by how much it can be extended."""

    session: Session
    more: Extensions


def ending_sessions() -> list[EndingSession]:
    """The current user's sessions that end soon, soonest first."""
    found = services().sessions.ending(person(), services().clock() + ENDS_SOON)
    return [EndingSession(session, extensions_of(session)) for session in found]


def extensions_of(session: Session) -> Extensions:
    """By how much a session can be extended."""
    groups = _groups_of(session) if session.state is State.RUNNING else []
    return services().lifecycle.extensions(session, groups)


def _groups_of(session: Session) -> list[UserPartition]:
    """The resource groups of a session's owner, with the session's own account and QOS."""
    # Once for all rows of a page, which may have many owners.
    groups_of: dict[tuple[str, SlurmOptions], list[UserPartition]] = g.setdefault("groups_of", {})
    options = SlurmOptions(session.account, session.qos)  # nothing else decides limits
    if (session.owner, options) not in groups_of:
        groups = cluster_view().partitions_for(session.owner, options) or []
        groups_of[session.owner, options] = groups
    return groups_of[session.owner, options]


def just_extended() -> Session | None:
    """The session that this page's request follows the extension of, if it runs."""
    found = request.args.get("extended", "")
    try:
        session = services().sessions.get(person(), found) if found else None
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
    found = services().sessions.unused(person(), services().clock() - span)
    notices = [(session, unused_of(session)) for session in found]
    warned = [(session, idle) for session, idle in notices if idle is not None and idle.warned]
    return sorted(warned, key=lambda one: (one[1].ends, one[0].id))


def unused_of(session: Session) -> IdleNotice | None:
    """The notice of an unused session; None for others."""
    return idle_notice(session, site_rules(), services().clock())


@dataclass(frozen=True)
class Ended:
    """An ended session, for its owner."""

    session: Session

    @property
    def how(self) -> str:
        """What happened, to follow its name."""
        return how_it_ended(self.session)

    @property
    def why(self) -> str:
        """The explanation, if the cause does not say it all."""
        return why_it_ended(self.session)

    @property
    def kept(self) -> str:
        """What stayed."""
        return kept_text(self.session)

    @property
    def more(self) -> str:
        """What the next one should have more of, if the limits permit it: "time" or "memory"."""
        what = shortage(self.session)
        return what if what and _propose(self.session, what) else ""


@dataclass(frozen=True)
class EndedList:
    """The ends that the current user has neither requested nor dismissed."""

    shown: list[Ended]
    more: int
    """How many more there are."""
    until: str
    """The time of the newest, with which all are dismissed."""


def ended_lately() -> EndedList:
    """The current user's ends of the last day, newest first."""
    found = services().sessions.ended_lately(person())
    newest = next((s.ended.isoformat() for s in found.sessions if s.ended), "")
    return EndedList([Ended(session) for session in found.sessions], found.hidden, newest)


def larger_memory(session: Session) -> int | None:
    """The memory in MiB to propose after a process was killed for want of it; None for no more."""
    return _propose(session, Shortage.MEMORY)


def _propose(session: Session, what: Shortage) -> int | None:
    return services().enlarger.propose(session, what, _groups_of(session))


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
    )
