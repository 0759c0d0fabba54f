"""Assigns origins to apps: each gets one, keeps it, or moves to the port its owner requests."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.apps.access import AppOptions, OpenApp
from portal.core.apps.catalog import AppSpec
from portal.core.apps.origins import (
    KnownOrigins,
    OriginChoice,
    OriginRequest,
    Origins,
    OriginUse,
    PortChooser,
    PortPolicy,
    Range,
    choose_name,
    claim_origin,
    port_of,
)
from portal.core.interfaces.systems import Clock
from portal.core.session.session import Session
from portal.core.site_rules import SiteRules
from portal.errors import Conflict, FieldError
from portal.store.access import AccessStore, OriginAssignment

MOVE_PAUSE = timedelta(seconds=3)
"""Time before an app can move again, so that concurrent requests agree on one origin."""
_MAX_ATTEMPTS = 5
"""Attempts to assign an origin while concurrent requests take the same one."""


@dataclass(frozen=True)
class AssignedOrigin:
    """The app at its origin, and the changes made by the assignment."""

    opened: OpenApp
    notice: str = ""
    """Why it is not at the requested port; "" if it is, or none was requested."""
    has_moved: bool = False
    revoked: tuple[str, ...] = ()
    """Keys of routes to the previous origin, which HAProxy must forget."""


class AppOrigins:
    """Assigns origins to apps."""

    def __init__(
        self,
        store: AccessStore,
        origins: Origins,
        site_rules: Callable[[], SiteRules],
        port_policy: PortPolicy,
        clock: Clock,
    ) -> None:
        self._store = store
        self._origins = origins
        self._site_rules = site_rules
        self._port_policy = port_policy
        self._clock = clock

    def pool(self, spec: AppSpec) -> Range | None:
        """First and last port that the owner can request; None if no port can be chosen."""
        return self._origins.pool(spec.kind) if self._site_rules().preferred_ports else None

    def check(self, spec: AppSpec, port: int) -> FieldError | None:
        """The problem with a requested port, if any, regardless of whether it is free."""
        pool = self.pool(spec)
        if pool is None:
            return FieldError("preferred_port", "ports cannot be chosen here")
        if not pool[0] <= port <= pool[1]:
            text = f"choose a port from {pool[0]} to {pool[1]}"
            return FieldError("preferred_port", text)
        if not self._origins.fits(str(port), spec.kind):
            text = f"browsers do not open port {port}; choose another one"
            return FieldError("preferred_port", text)
        return None

    def assign(
        self, session: Session, spec: AppSpec, options: AppOptions, opened: OpenApp | None
    ) -> AssignedOrigin:
        """Assign an origin: the current one, or the requested port if its owner may have it.

        `opened` is the app as last read, None if it was never opened. Raises Conflict if no origin
        is left, or the session is over.
        """
        if opened is not None and self.keeps_origin(opened, spec, options):
            return AssignedOrigin(opened, self._notice(options, opened, _AGAIN))
        for _ in range(_MAX_ATTEMPTS):
            assigned = self._store.assign_origin(
                session.id,
                opened,
                self._request(session, spec),
                lambda origins: self._choose(origins, session, spec, options, opened),
                self._clock(),
                options.asked or "",
            )
            if assigned.opened is not None:
                return self._result(assigned, opened, options, spec)
        raise Conflict("All ports for apps are taken. Try again in a moment.")

    def _result(
        self,
        assigned: OriginAssignment,
        before: OpenApp | None,
        options: AppOptions,
        spec: AppSpec,
    ) -> AssignedOrigin:
        opened, choice = assigned.opened, assigned.choice
        if opened is None or not self._origins.fits(opened.label, spec.kind):
            raise Conflict("It was moved at the same time. Open it again.")
        notice = self._notice(options, opened, choice.refused if choice else _MEANWHILE)
        has_moved = before is not None and choice is not None and opened.label != before.label
        return AssignedOrigin(opened, notice, has_moved, assigned.revoked)

    def keeps_origin(self, opened: OpenApp, spec: AppSpec, options: AppOptions) -> bool:
        """Whether the app keeps its origin, as far as can be decided without the store."""
        if not self._origins.fits(opened.label, spec.kind):
            return False
        if options.public and not opened.public_since:
            return False  # the store knows which other users have had this origin
        if options.port is None:
            return True
        return opened.moved is not None and self._clock() - opened.moved < MOVE_PAUSE

    def _request(self, session: Session, spec: AppSpec) -> OriginRequest:
        use = OriginUse(session.owner, session.environment, session.version, spec.name)
        return OriginRequest(use, spec.kind, keep=spec.keep_origin, may_be_public=spec.public)

    def _choose(
        self,
        origins: KnownOrigins,
        session: Session,
        spec: AppSpec,
        options: AppOptions,
        opened: OpenApp | None,
    ) -> OriginChoice:
        """The origin to assign, given the origins in the store."""
        request, now = self._request(session, spec), self._clock()
        usable = self._origins.usable(spec.kind)
        ports = PortChooser(usable, origins, request, self._port_policy, now)
        requested = (
            options.port if options.port is not None and self._may_move(opened, now) else None
        )
        has_it = opened is not None and requested is not None and opened.label == str(requested)
        refused = ports.refusal(requested) if requested is not None and not has_it else ""
        if requested is not None and not refused:
            return self._claim(origins, str(requested), request, now, requested=True)
        if opened is not None and self._may_stay(origins, opened, spec, options):
            return OriginChoice(None, refused, port_requested=bool(refused))
        if self._origins.has_name(spec.kind):
            name = choose_name(origins, request) or secrets.token_hex(10)
            return self._claim(origins, name, request, now, refused)
        port = ports.choose(random.choice)
        if port is None:
            raise Conflict(ports.why_none())
        return self._claim(origins, str(port), request, now, refused)

    @staticmethod
    def _claim(
        origins: KnownOrigins,
        label: str,
        request: OriginRequest,
        now: datetime,
        refused: str = "",
        *,
        requested: bool = False,
    ) -> OriginChoice:
        origin = claim_origin(
            origins.by_label.get(label), label, request, now, secrets.token_hex(8)
        )
        return OriginChoice(origin, refused, requested)

    @staticmethod
    def _may_move(opened: OpenApp | None, now: datetime) -> bool:
        """Whether the last request for a port was long enough ago."""
        return opened is None or opened.moved is None or now - opened.moved >= MOVE_PAUSE

    def _may_stay(
        self, origins: KnownOrigins, opened: OpenApp, spec: AppSpec, options: AppOptions
    ) -> bool:
        """Whether the app can keep its current origin."""
        if not self._origins.fits(opened.label, spec.kind):
            return False
        origin = origins.by_label.get(opened.label)
        if not options.public or origin is None:
            return True
        # A public app gets neither an origin for which browsers may have another user's data, nor
        # a name that its owner would get again for a private app.
        return not origin.shared and (not origin.kept or port_of(origin.label) is not None)

    def _notice(self, options: AppOptions, opened: OpenApp, why: str) -> str:
        if options.port is None or opened.label == str(options.port):
            return ""
        port = port_of(opened.label)
        where = f"on port {port}" if port is not None else f"at {self._origins.url(opened.label)}"
        return f"{why or f'Port {options.port} is taken'}; it is {where}."


_AGAIN = f"A port was requested a moment ago: try again in {MOVE_PAUSE.seconds} seconds"
_MEANWHILE = "Another request moved it at the same time"
