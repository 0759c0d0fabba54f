"""Slurm's estimate of when a session would start if it were launched."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from portal.core.auth.person import Person, hash_secret
from portal.core.cluster.job_reports import Estimate
from portal.core.cluster.limits import Tres
from portal.core.cluster.usage import limit_reached
from portal.core.cluster_view import ClusterView
from portal.core.interfaces.systems import Clock, Scheduler
from portal.core.notices.maintenance import UnderMaintenance
from portal.core.session.session import Session
from portal.errors import GresUnknown, Unavailable
from portal.node.common.fgpu import of_gres
from portal.services.cluster import Cluster
from portal.services.launch.checks import Plan
from portal.services.launch.launcher import Draft

log = logging.getLogger(__name__)

PAUSE = timedelta(seconds=5)
"""Minimum time between two estimates for one user, in each process of the portal."""


@dataclass
class _Query:
    request: str
    """Its hash, since a request may contain passwords."""
    time: datetime
    answer: Estimate | None = None


class Estimates:
    """Asks Slurm at a limited rate; errors never prevent a launch."""

    def __init__(
        self,
        scheduler: Scheduler,
        cluster: Cluster,
        clock: Clock,
        draft: Callable[[Plan], Draft],
        launch_begin: Callable[[Person], object],
    ) -> None:
        self._scheduler = scheduler
        self._cluster = cluster
        self._clock = clock
        self._draft = draft
        self._launch_begin = launch_begin
        self._last: dict[str, _Query] = {}
        self._lock = threading.Lock()

    def estimate(self, plan: Plan) -> Estimate | None:
        """The estimate for one session of this request; None if Slurm gives none."""
        person, request = plan.view.person, plan.request
        session, script = self._draft(plan)
        try:
            self._launch_begin(person)
        except UnderMaintenance as error:
            return Estimate(None, "", error.text)
        if limit := self._held_back(plan.view.cluster, session):
            return Estimate(None, "", f"It has to wait until other sessions have ended: {limit}.")
        query = _Query(hash_secret(request.model_dump_json()), self._clock())
        with self._lock:
            last = self._last.get(person.name)
            if last is not None and query.time - last.time < PAUSE:
                return last.answer if last.request == query.request else _ask_later()
            fresh = {
                user: earlier
                for user, earlier in self._last.items()
                if query.time - earlier.time < PAUSE
            }
            self._last = fresh | {person.name: query}
        try:
            query.answer = self._scheduler.estimate(person.name, script)
        except GresUnknown as error:
            if not self._cluster.has_gpu_for(session):
                query.answer = Estimate(None, "", error.errors[0].message)
        except Unavailable as error:
            log.info("no estimate for %s: %s", person.name, error)
        except Exception:  # Slurm may change the format; launches must not depend on it
            log.exception("reading an estimate")
        return query.answer

    def _held_back(self, cluster: ClusterView, session: Session) -> str:
        requested = Tres(session.cpus, session.memory_mb, *of_gres(session.gres))
        group = session.partition or ""
        limits, use = cluster.limits, cluster.use
        return limit_reached(
            session.owner, group, requested, limits, use, session.gpu_kind, session.slurm
        )


def _ask_later() -> Estimate:
    return Estimate(None, "", "Slurm was asked a moment ago; try again in a few seconds.", True)
