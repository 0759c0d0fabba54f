"""When a session counts as used, and when it is ended because nobody uses it.

Idleness is what was measured, never what nobody knows: after a time that nobody has watched, a
session counts as used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from portal.core.session.session import Session, State
from portal.core.site_rules import SiteRules

UNWATCHED = timedelta(minutes=2)
"""After a longer pause between two measurements nobody knows what happened in it."""
USUAL_WARNING = timedelta(minutes=15)
TOLD_AFTER = timedelta(minutes=5)
"""How long a session is unused before its owner reads about it, quietly."""
GPU_AT_WORK = 2.0
"""Percent of a whole GPU from which on a session computes; nobody's GPU is busy by itself."""
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class TrafficSample:
    """What browsers had sent to each app, by its gateway name, at one moment."""

    at: datetime
    sent: Mapping[str, Traffic] = field(default_factory=dict)


def used_sessions(
    running: Collection[str],
    before: TrafficSample | None,
    now: TrafficSample,
    noise: Mapping[str, int],
) -> set[str]:
    """Those of the running sessions that were used since the measurement before.

    `noise` says by app how many bytes a minute an open window sends by itself.
    """
    if before is None or now.at - before.at > UNWATCHED:
        return set(running)
    found = set()
    # Noise comes in drops: in a part of a minute there may be a whole minute's.
    minutes = max((now.at - before.at) / _MINUTE, 1.0)
    for name, sent in now.sent.items():
        app, _, session = name.removesuffix(".slipway").rpartition(".")
        new = _since(before.sent.get(name), sent)
        if new.requests > 0 or new.bytes > noise.get(app, 0) * minutes:
            found.add(session)
    return found & set(running)


def _since(before: Traffic | None, now: Traffic) -> Traffic:
    # What has fallen began anew: HAProxy was restarted, or had forgotten the app for its silence.
    if before is None or now.requests < before.requests or now.bytes < before.bytes:
        return now
    return Traffic(now.requests - before.requests, now.bytes - before.bytes)


def is_computing(
    session: Session,
    cpu_percent: float | None,
    busy: Collection[str],
    rules: SiteRules,
    now: datetime,
    gpu_percent: float | None = None,
) -> bool:
    """Whether a heartbeat shows a computation, or follows a silence that may have hidden one."""
    computes = cpu_percent is not None and cpu_percent >= rules.idle_cpu_percent
    computes |= gpu_percent is not None and gpu_percent >= GPU_AT_WORK
    return computes or bool(busy) or not _heard(session, now)


def _heard(session: Session, now: datetime) -> bool:
    heard = max(filter(None, (session.usage_at, session.ready)), default=None)
    return heard is not None and now - heard <= UNWATCHED


def should_record_use(session: Session, rules: SiteRules, now: datetime) -> bool:
    """Whether use is news: it is written down once a minute, with short rules more often."""
    span = (
        _MINUTE if rules.idle_minutes is None else min(_MINUTE, _MINUTE * rules.idle_minutes / 10)
    )
    return session.last_used is None or now - session.last_used >= span


def idle_deadline(session: Session, rules: SiteRules) -> datetime | None:
    """When a running session ends unless somebody uses it; None where it never does.

    A rule that is new gives everybody at least the time of a warning.
    """
    if rules.idle_minutes is None or session.state is not State.RUNNING:
        return None
    if session.last_used is None:
        return None
    ends = session.last_used + timedelta(minutes=rules.idle_minutes)
    return ends if rules.idle_set is None else max(ends, rules.idle_set + warning_span(rules))


def warning_span(rules: SiteRules) -> timedelta:
    """How long before its end the owner of an unused session is warned."""
    if rules.idle_warning is not None:
        return timedelta(minutes=rules.idle_warning)
    return min(USUAL_WARNING, timedelta(minutes=rules.idle_minutes or 0) / 4)


def is_unused(session: Session, rules: SiteRules, now: datetime) -> bool:
    """Whether to end it: its time is over, and the runner would have told of a computation."""
    ends = idle_deadline(session, rules)
    return ends is not None and ends <= now and _heard(session, now)


@dataclass(frozen=True)
class IdleNotice:
    """What its people read of a session that nobody uses."""

    since: datetime
    ends: datetime
    warned: bool
    """Whether it ends so soon that it is said aloud."""


def idle_notice(session: Session, rules: SiteRules, now: datetime) -> IdleNotice | None:
    """What to say of a session; None while it is used, and where its time limit comes first."""
    ends, since = idle_deadline(session, rules), session.last_used
    if ends is None or since is None or not _heard(session, now):
        return None
    if session.deadline is not None and session.deadline <= ends:
        return None
    warned = ends - now <= warning_span(rules)
    return IdleNotice(since, ends, warned) if warned or now - since >= TOLD_AFTER else None


@dataclass(frozen=True)
class Traffic:
    """What browsers have sent to one app of one session since HAProxy began to count."""

    requests: int
    """Requests that an unused window would not send by itself."""
    bytes: int
