"""Sessions that the worker measures for idleness."""

from __future__ import annotations

from typing import Any

from portal.core.admin.caps import CapsRequest
from portal.core.session.session import Session, State
from portal.core.session_job.runner_protocol import Heartbeat
from portal.core.site_rules import SiteRules
from portal.services.session.idle_culler import IdleCuller
from tests.support.fakes import World
from tests.support.sessions import ADMIN, session_now


def idle_culler(world: World) -> IdleCuller:
    """A worker that has just been started."""
    return world.services.idle_culler


def set_idle_rule(world: World, minutes: int | None = 60, **more: Any) -> SiteRules:
    """Set the administrator's rule."""
    asked = CapsRequest(idle_minutes=minutes, **more)
    return world.services.administration.save_rules(ADMIN, asked)


def send_heartbeat(world: World, session: Session, cpu_seconds: float = 1.0, *busy: str) -> None:
    """Send the runner's report."""
    known = session_now(world, session)
    world.services.runner_calls.record_usage(
        known, Heartbeat(cpu_seconds=cpu_seconds, memory_bytes=1, busy=busy)
    )


def pass_minutes(world: World, session: Session, minutes: float) -> None:
    """Let time pass while the worker measures and the runner reports, without any use."""
    for _ in range(round(minutes * 2)):
        world.clock.advance(seconds=30)
        if session_now(world, session).state is State.RUNNING:
            send_heartbeat(world, session)
        idle_culler(world).cull()
