"""Use and idleness: the worker measures what browsers send, and ends what nobody uses any more."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from portal.core.cluster.usage import SlurmStatus
from portal.core.interfaces.systems import RecordEvent
from portal.core.session.idle import TrafficSample, is_unused, should_record_use, used_sessions
from portal.core.session.session import UNUSED, Session, State
from portal.core.session.status import shown_state
from portal.core.site_rules import SiteRules
from portal.errors import PortalError
from portal.services.session.sessions import Sessions

log = logging.getLogger(__name__)

SELF = "Slipway"
"""Who did it, in the journal."""


class IdleCuller:
    """Notes when sessions are used and ends the unused ones, as administrators have decided."""

    def __init__(
        self, sessions: Sessions, rules: Callable[[], SiteRules], note: RecordEvent
    ) -> None:
        self._sessions = sessions
        self._store = sessions.store
        self._status = sessions.status
        self._rules = rules
        self._note = note

    def cull(self) -> None:
        """Measure once; raises Unavailable, and changes nothing, when HAProxy does not answer."""
        now, rules = self._sessions.clock(), self._rules()
        before = self._status.measured()
        measured = TrafficSample(now, self._sessions.proxy.traffic())
        running = {s.id: s for s in self._store.live() if s.state is State.RUNNING}
        used = used_sessions(running, before, measured, self._noise())
        news = [s for s in used if should_record_use(running[s], rules, now)]
        if news:
            self._store.note_use(news, now)
        # After the use that it shows: a crash in between notes that once more and loses nothing.
        self._status.save_measured(measured)
        slurm = self._status.slurm_status()
        for session in running.values():
            if session.id in used or not is_unused(session, rules, now):
                continue
            try:
                self._end(session, slurm, now)
            except PortalError as error:  # it must not hold up the others
                log.warning("session %s: %s", session.id, error)

    def _noise(self) -> dict[str, int]:
        noise: dict[str, int] = {}
        for app in self._sessions.catalog().apps.values():
            noise[app.server] = max(app.noise, noise.get(app.server, 0))
        return noise

    def _end(self, session: Session, slurm: SlurmStatus, now: datetime) -> None:
        """End a session, unless somebody has used it since it was read."""
        if session.last_used is None or shown_state(session, slurm, now) != State.RUNNING:
            return
        changed = self._store.end_unused(
            session.id,
            session.last_used,
            state=State.ENDING,
            stop_requested=now,
            stopped_by=UNUSED,
        )
        if changed is None:
            return
        log.info("session %s: not used since %s", session.id, session.last_used)
        self._sessions.cancel_again(changed)
        since = f"not used since {session.last_used:%Y-%m-%d %H:%M} UTC"
        self._note(SELF, "session.idle", session.id, f"{session.name} of {session.owner}: {since}")
        self._sessions.apps.close_session(session.id)
