"""Cleans up after sessions whose end has been stored: cancels their jobs, closes their apps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from portal.core.interfaces.systems import Scheduler
from portal.core.session.session import Session
from portal.errors import Unavailable
from portal.services.owner_queue import RunForOwner

log = logging.getLogger(__name__)


class Teardown:
    """Sends scancel, which the reconciler repeats if Slurm does not answer, and closes apps."""

    def __init__(
        self,
        scheduler: Scheduler,
        run_for_owner: RunForOwner,
        close_apps: Callable[[str], None],
    ) -> None:
        self._scheduler = scheduler
        self._run_for_owner = run_for_owner
        self.close_apps = close_apps
        """Revokes all access to the apps of the session with this id. Idempotent."""

    def cancel(self, sessions: Iterable[Session]) -> None:
        """Cancel the jobs of these sessions, with one command for each owner; never raises."""
        jobs: dict[str, list[str]] = {}
        for session in sessions:
            if session.job_id is not None:
                jobs.setdefault(session.owner, []).append(session.job_id)
        for owner, job_ids in jobs.items():
            try:
                self._scheduler.cancel(owner, *job_ids)
            except Unavailable as error:
                log.warning("jobs %s: not cancelled yet: %s", ", ".join(job_ids), error)

    def cancel_later(self, session: Session) -> None:
        """The same in the owner's queue, for the worker: a slow shell delays no other user."""
        name = f"cancel {session.id}"
        self._run_for_owner(f"{session.owner}/cancel", name, lambda: self.cancel([session]))
