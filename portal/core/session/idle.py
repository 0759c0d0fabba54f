"""When a session counts as used, and when it is ended for being idle.

Only measured idleness counts: after a gap in the measurements, a session counts as used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from portal.core.session.session import Session, State
from portal.core.site_rules import SiteRules

UNWATCHED = timedelta(minutes=2)
"""The longest gap between two measurements that does not count as use."""
USUAL_WARNING = timedelta(minutes=15)
NOTICE_AFTER = timedelta(minutes=5)
"""Idle time after which pages show an unobtrusive notice to the owner."""
GPU_BUSY_PERCENT = 2.0
"""GPU utilisation above which a session counts as busy (percent of the whole GPU)."""
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class TrafficSample:
    """Total traffic from browsers to each app at one time, by the app's gateway name."""

    at: datetime
    sent: Mapping[str, Traffic] = field(default_factory=dict)


def used_sessions(
    running: Collection[str],
    before: TrafficSample | None,
    now: TrafficSample,
    noise: Mapping[str, int],
) -> set[str]:
    """The running sessions that were used since the previous measurement.

    `noise`: bytes per minute that an unused open window sends, by app.
    """
    if before is None or now.at - before.at > UNWATCHED:
        return set(running)
    used = set()
    # Noise comes in bursts: a fraction of a minute may contain a whole minute's bytes.
    minutes = max((now.at - before.at) / _MINUTE, 1.0)
    for name, sent in now.sent.items():
        app, _, session = name.removesuffix(".slipway").rpartition(".")
        new = _since(before.sent.get(name), sent)
        if new.requests > 0 or new.bytes > noise.get(app, 0) * minutes:
            used.add(session)
    return used & set(running)


def _since(before: Traffic | None, now: Traffic) -> Traffic:
    # A lower count was reset: HAProxy was restarted, or expired the app's idle entry.
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
    """Whether a heartbeat shows a computation, or follows a gap that may have hidden one."""
    computes = cpu_percent is not None and cpu_percent >= rules.idle_cpu_percent
    computes |= gpu_percent is not None and gpu_percent >= GPU_BUSY_PERCENT
    return computes or bool(busy) or not _is_monitored(session, now)


def _is_monitored(session: Session, now: datetime) -> bool:
    last_report = max(filter(None, (session.usage_at, session.ready)), default=None)
    return last_report is not None and now - last_report <= UNWATCHED


def should_record_use(session: Session, rules: SiteRules, now: datetime) -> bool:
    """Whether to store the use: once a minute, more often with a short `idle_minutes`."""
    span = (
        _MINUTE if rules.idle_minutes is None else min(_MINUTE, _MINUTE * rules.idle_minutes / 10)
    )
    return session.last_used is None or now - session.last_used >= span


def idle_deadline(session: Session, rules: SiteRules) -> datetime | None:
    """When a running session ends unless it is used; None if it never does.

    After a change of the rules, every session has at least the warning time left.
    """
    if rules.idle_minutes is None or session.state is not State.RUNNING:
        return None
    if session.last_used is None:
        return None
    ends = session.last_used + timedelta(minutes=rules.idle_minutes)
    return ends if rules.idle_set is None else max(ends, rules.idle_set + warning_span(rules))


def warning_span(rules: SiteRules) -> timedelta:
    """How long before the end of an unused session its owner is warned."""
    if rules.idle_warning is not None:
        return timedelta(minutes=rules.idle_warning)
    return min(USUAL_WARNING, timedelta(minutes=rules.idle_minutes or 0) / 4)


def is_unused(session: Session, rules: SiteRules, now: datetime) -> bool:
    """Whether to end it: its idle deadline has passed, and its runner is reporting its load."""
    ends = idle_deadline(session, rules)
    return ends is not None and ends <= now and _is_monitored(session, now)


@dataclass(frozen=True)
class IdleNotice:
    """The notice about an unused session."""

    since: datetime
    ends: datetime
    warned: bool
    """Whether it ends so soon that a warning is shown."""


def idle_notice(session: Session, rules: SiteRules, now: datetime) -> IdleNotice | None:
    """The notice for a session; None while it is used, or if its time limit comes first."""
    ends, since = idle_deadline(session, rules), session.last_used
    if ends is None or since is None or not _is_monitored(session, now):
        return None
    if session.deadline is not None and session.deadline <= ends:
        return None
    warned = ends - now <= warning_span(rules)
    return IdleNotice(since, ends, warned) if warned or now - since >= NOTICE_AFTER else None


def notice_changes(session: Session, rules: SiteRules) -> list[datetime]:
    """When the notice for a session that nobody uses appears, and when it becomes a warning."""
    ends, since = idle_deadline(session, rules), session.last_used
    if ends is None or since is None:
        return []
    return [since + NOTICE_AFTER, ends - warning_span(rules)]


@dataclass(frozen=True)
class Traffic:
    """Traffic from browsers to one app of one session since HAProxy began to count."""

    requests: int
    """Requests, without those that an unused window sends by itself."""
    bytes: int
