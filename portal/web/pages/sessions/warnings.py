"""The warnings above the list: sessions that end soon, and unused sessions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from flask import Flask, g

from portal.core.session.idle import IdleNotice, idle_notice, warning_span
from portal.core.session.session import Session
from portal.core.session.status import ENDS_SOON, ends_soon
from portal.core.site_rules import SiteRules
from portal.web.context import person, services


@dataclass(frozen=True)
class EndingSession:
    """A session that ends soon; it could be extended by `more` minutes, 0 for not at all."""

    session: Session
    more: int


def ending_sessions() -> list[EndingSession]:
    """The current user's sessions that end soon, soonest first."""
    found = services().sessions.ending(person(), services().clock() + ENDS_SOON)
    more = services().lifecycle.next_extension
    return [EndingSession(session, more(session)) for session in found]


def is_ending(session: Session) -> bool:
    """Whether to warn that this session ends soon."""
    return ends_soon(session, services().clock())


def unused_sessions() -> list[tuple[Session, IdleNotice]]:
    """The current user's unused sessions that will be ended soon, soonest first."""
    rules = _rules()
    if rules.idle_minutes is None:
        return []
    span = timedelta(minutes=rules.idle_minutes) - warning_span(rules)
    found = services().sessions.unused(person(), services().clock() - span)
    notices = [(session, unused_of(session)) for session in found]
    warned = [(session, idle) for session, idle in notices if idle is not None and idle.warned]
    return sorted(warned, key=lambda one: (one[1].ends, one[0].id))


def unused_of(session: Session) -> IdleNotice | None:
    """The notice of an unused session; None for others."""
    return idle_notice(session, _rules(), services().clock())


def _rules() -> SiteRules:
    # Read once for all rows of a page.
    if "site_rules" not in g:
        g.site_rules = services().administration.site_rules()
    rules: SiteRules = g.site_rules
    return rules


def install(app: Flask) -> None:
    """Make these functions available to the templates."""
    app.jinja_env.globals.update(
        ending_sessions=ending_sessions,
        is_ending=is_ending,
        unused_sessions=unused_sessions,
        unused_of=unused_of,
    )
