"""Records when sessions are used, and ends idle ones."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from portal.core.apps.catalog import Catalog
from portal.core.cluster.usage import SlurmStatus
from portal.core.interfaces.systems import Clock, RecordEvent
from portal.core.session.idle import TrafficSample, is_unused, should_record_use, used_sessions
from portal.core.session.session import Session, State
from portal.core.session.status import shown_state
from portal.core.session.transitions import stop_unused
from portal.core.site_rules import SiteRules
from portal.errors import PortalError
from portal.services.apps.proxy import ProxyRoutes
from portal.services.teardown import Teardown
from portal.store.sessions import SessionStore
from portal.store.status import StatusStore

log = logging.getLogger(__name__)

ACTOR = "Slipway"
"""The actor in audit events."""


class IdleCuller:
    """Reads HAProxy's traffic counters and ends unused sessions according to the site's rules."""

    def __init__(
        self,
        *,
        store: SessionStore,
        status: StatusStore,
        proxy: ProxyRoutes,
        teardown: Teardown,
        catalog: Callable[[], Catalog],
        site_rules: Callable[[], SiteRules],
        record: RecordEvent,
        clock: Clock,
    ) -> None:
        self._store = store
        self._status = status
        self._proxy = proxy
        self._teardown = teardown
        self._catalog = catalog
        self._site_rules = site_rules
        self._record = record
        self._clock = clock

    def cull(self) -> None:
        """Measure once; raises Unavailable, without a change, when HAProxy does not answer."""
        now, rules = self._clock(), self._site_rules()
        before = self._status.measured()
        sample = TrafficSample(now, self._proxy.traffic())
        running = {s.id: s for s in self._store.live() if s.state is State.RUNNING}
        used = used_sessions(running, before, sample, self._idle_traffic())
        to_record = [s for s in used if should_record_use(running[s], rules, now)]
        if to_record:
            self._store.note_use(to_record, now)
        # After the use that it shows: a crash in between records use twice, but never loses it.
        self._status.save_measured(sample)
        slurm = self._status.slurm_status()
        for session in running.values():
            if session.id in used or not is_unused(session, rules, now):
                continue
            try:
                self._end(session, slurm, now)
            except PortalError as error:  # must not prevent ending the others
                log.warning("session %s: %s", session.id, error)

    def _idle_traffic(self) -> dict[str, int]:
        """Bytes per minute that an unused open window sends, by app server."""
        noise: dict[str, int] = {}
        for app in self._catalog().apps.values():
            noise[app.server] = max(app.noise, noise.get(app.server, 0))
        return noise

    def _end(self, session: Session, slurm: SlurmStatus, now: datetime) -> None:
        """End a session, unless it has been used since it was read."""
        if session.last_used is None or shown_state(session, slurm, now) != State.RUNNING:
            return
        changed = self._store.apply(session.id, stop_unused(session, now))
        if changed is None:
            return
        log.info("session %s: not used since %s", session.id, session.last_used)
        self._teardown.cancel_later(changed)
        since = f"not used since {session.last_used:%Y-%m-%d %H:%M} UTC"
        detail = f"{session.name} of {session.owner}: {since}"
        self._record(ACTOR, "session.idle", session.id, detail)
        self._teardown.close_apps(session.id)
