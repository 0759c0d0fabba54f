"""Slurm's own guess when a session would start, before anybody launches it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.auth.person import Person, hash_secret
from portal.core.cluster.fgpu import of_gres
from portal.core.cluster.jobs import Estimate
from portal.core.cluster.limits import Tres
from portal.core.cluster.usage import limit_reached
from portal.core.interfaces.status import StatusStore
from portal.core.interfaces.systems import Clock, Scheduler
from portal.core.launch.request import LaunchRequest
from portal.core.session.session import Session
from portal.errors import Unavailable

log = logging.getLogger(__name__)

PAUSE = timedelta(seconds=5)
"""How often Slurm is asked for one person at most, in each process of the portal."""


@dataclass
class _Asked:
    request: str
    """Its hash: a request may hold passwords."""
    time: datetime
    answer: Estimate | None = None


class Estimates:
    """Asks Slurm, now and then; whatever goes wrong never stands in the way of a launch."""

    def __init__(
        self,
        scheduler: Scheduler,
        status: StatusStore,
        clock: Clock,
        draft: Callable[[Person, LaunchRequest], tuple[Session, str]],
    ) -> None:
        self._scheduler = scheduler
        self._status = status
        self._clock = clock
        self._draft = draft
        self._last: dict[str, _Asked] = {}
        self._lock = threading.Lock()

    def estimate(self, person: Person, request: LaunchRequest) -> Estimate | None:
        """The estimate for one session of this request; None when Slurm does not say.

        Raises InvalidRequest where a launch would.
        """
        session, script = self._draft(person, request)
        if limit := self._held_back(session):
            return Estimate(None, "", f"It has to wait until other sessions have ended: {limit}.")
        asked = _Asked(hash_secret(request.model_dump_json()), self._clock())
        with self._lock:
            last = self._last.get(person.name)
            if last is not None and asked.time - last.time < PAUSE:
                return last.answer if last.request == asked.request else _ask_later()
            fresh = {
                who: earlier
                for who, earlier in self._last.items()
                if asked.time - earlier.time < PAUSE
            }
            self._last = fresh | {person.name: asked}
        try:
            asked.answer = self._scheduler.estimate(person.name, script)
        except Unavailable as error:
            log.info("no estimate for %s: %s", person.name, error)
        except Exception:  # Slurm may word a guess in a new way, and launches go on all the same
            log.exception("reading an estimate")
        return asked.answer

    def _held_back(self, session: Session) -> str:
        wanted = Tres(session.cpus, session.memory_mb, *of_gres(session.gres))
        limits, use = self._status.limits(), self._status.use()
        group = session.partition or ""
        return limit_reached(session.owner, group, wanted, limits, use, session.gpu_kind)


def _ask_later() -> Estimate:
    return Estimate(None, "", "Slurm was asked a moment ago; look again in a few seconds.", True)
