"""Where apps are found: each gets an origin, keeps it, or moves to the port of a wish."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.access import AppWish, OpenApp
from portal.core.administration import SiteRules
from portal.core.app import AppSpec
from portal.core.origins import (
    Choice,
    Origins,
    Places,
    PortChooser,
    PortRules,
    Range,
    Seeker,
    Use,
    choose_name,
    occupy,
    port_of,
)
from portal.core.ports import Clock
from portal.core.session import Session
from portal.core.stores import AccessStore, Placed
from portal.errors import Conflict, FieldError

MOVE_PAUSE = timedelta(seconds=3)
"""How long an app stays after a wish for a port: requests at once shall agree on one place."""
_TRIES = 5
"""How often two who want the same port at the same moment may meet."""


@dataclass(frozen=True)
class Place:
    """Where an app is now."""

    opened: OpenApp
    told: str = ""
    """Why it is not where its owner asked for."""
    left: OpenApp | None = None
    """Where it was before, if it has moved."""
    keys: tuple[str, ...] = ()
    """The ways that this has taken away."""


class AppPlaces:
    """Gives apps their origins."""

    def __init__(
        self,
        store: AccessStore,
        origins: Origins,
        rules: Callable[[], SiteRules],
        port_rules: PortRules,
        clock: Clock,
    ) -> None:
        self._store = store
        self._origins = origins
        self._rules = rules
        self._port_rules = port_rules
        self._clock = clock

    def pool(self, spec: AppSpec) -> Range | None:
        """The ports that the app's owner may ask for; None where none may be asked for."""
        return self._origins.pool(spec.kind) if self._rules().preferred_ports else None

    def check(self, spec: AppSpec, port: int) -> FieldError | None:
        """What is wrong with a wish for a port, whoever has it."""
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

    def place(self, session: Session, spec: AppSpec, wish: AppWish, known: OpenApp | None) -> Place:
        """The app's place; the wished-for port, where that is free for its owner.

        Raises Conflict where there is no place at all.
        """
        if known is not None and self._stays(known, spec, wish):
            return Place(known, self._told(wish, known, _AGAIN))
        for _ in range(_TRIES):
            placed = self._store.place(
                session.id,
                known,
                self._seeker(session, spec),
                lambda places: self._choose(places, session, spec, wish, known),
                self._clock(),
                wish.asked or "",
            )
            if placed.opened is not None:
                return self._result(placed, known, wish, spec)
        raise Conflict("All ports for apps are taken. Try again in a moment.")

    def _result(self, placed: Placed, known: OpenApp | None, wish: AppWish, spec: AppSpec) -> Place:
        opened = placed.opened
        if opened is None or not self._origins.fits(opened.label, spec.kind):
            raise Conflict("It was moved at the same time. Open it again.")
        why = placed.choice.refused if placed.choice else _MEANWHILE
        moved = known is not None and placed.choice is not None and opened.label != known.label
        return Place(opened, self._told(wish, opened, why), known if moved else None, placed.keys)

    def _stays(self, known: OpenApp, spec: AppSpec, wish: AppWish) -> bool:
        if not self._origins.fits(known.label, spec.kind):
            return False
        if wish.public and not known.public_since:
            return False  # whether it may be where it is only the store can say
        if wish.port is None:
            return True
        return known.moved is not None and self._clock() - known.moved < MOVE_PAUSE

    def _seeker(self, session: Session, spec: AppSpec) -> Seeker:
        use = Use(session.owner, session.environment, session.version, spec.name)
        return Seeker(use, spec.kind, keep=spec.keep_origin, open=spec.public)

    def _choose(
        self,
        places: Places,
        session: Session,
        spec: AppSpec,
        wish: AppWish,
        known: OpenApp | None,
    ) -> Choice:
        """What to do, from what the store knows at this moment."""
        seeker, now = self._seeker(session, spec), self._clock()
        usable = self._origins.usable(spec.kind)
        ports = PortChooser(usable, places, seeker, self._port_rules, now)
        asked = wish.port if wish.port is not None and self._may_move(known, now) else None
        is_there = known is not None and asked is not None and known.label == str(asked)
        refused = ports.refusal(asked) if asked is not None and not is_there else ""
        if asked is not None and not refused:
            return self._take(places, str(asked), seeker, now, asked=True)
        if known is not None and self._may_stay(places, known, spec, wish):
            return Choice(None, refused, asked=bool(refused))
        if self._origins.has_name(spec.kind):
            name = choose_name(places, seeker) or secrets.token_hex(10)
            return self._take(places, name, seeker, now, refused)
        port = ports.choose(random.choice)
        if port is None:
            raise Conflict(ports.why_none())
        return self._take(places, str(port), seeker, now, refused)

    @staticmethod
    def _take(
        places: Places,
        label: str,
        seeker: Seeker,
        now: datetime,
        refused: str = "",
        *,
        asked: bool = False,
    ) -> Choice:
        origin = occupy(places.origins.get(label), label, seeker, now, secrets.token_hex(8))
        return Choice(origin, refused, asked)

    @staticmethod
    def _may_move(known: OpenApp | None, now: datetime) -> bool:
        """Whether the last wish for a port is long enough ago."""
        return known is None or known.moved is None or now - known.moved >= MOVE_PAUSE

    def _may_stay(self, places: Places, known: OpenApp, spec: AppSpec, wish: AppWish) -> bool:
        """Whether the app's present origin is still right for it."""
        if not self._origins.fits(known.label, spec.kind):
            return False
        origin = places.origins.get(known.label)
        if not wish.public or origin is None:
            return True
        # Nobody else's storage is where everybody comes, and no name that its owner gets again.
        return not origin.shared and (not origin.kept or port_of(origin.label) is not None)

    def _told(self, wish: AppWish, opened: OpenApp, why: str) -> str:
        if wish.port is None or opened.label == str(wish.port):
            return ""
        port = port_of(opened.label)
        where = f"on port {port}" if port is not None else f"at {self._origins.url(opened.label)}"
        return f"{why or f'Port {wish.port} is taken'}; it is {where}."


_AGAIN = f"A port was asked for a moment ago: ask again in {MOVE_PAUSE.seconds} seconds"
_MEANWHILE = "Another request moved it at the same moment"
