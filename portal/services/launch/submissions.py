"""Submits jobs in threads of their own, for which a few requests wait long, and others a moment.

sbatch takes as long as slurmctld and the user's shell let it. A class that launches together would
otherwise hold all threads of the web application, while nobody else is answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from portal.core.threads import own_thread
from portal.errors import PortalError
from portal.services.owner_queue import RunForOwner

WAIT = 20.0
"""Seconds that a request waits for its submission, to show what Slurm refuses."""
WAITING = 2
"""Requests of a web process that wait so long at once."""
SHORT_WAIT = 1.0
"""Seconds that others wait: usually sbatch takes half a second."""
THREADS = 4
"""Submissions at once of a web process."""

Result = TypeVar("Result")


class Submissions:
    """Runs submissions, each owner's in their order; owners take turns."""

    def __init__(
        self, run_for_owner: RunForOwner, wait: float = WAIT, short_wait: float = SHORT_WAIT
    ) -> None:
        self._run_for_owner = run_for_owner
        self._wait = wait
        self._short_wait = short_wait
        self._waiting = threading.BoundedSemaphore(WAITING)

    def run(
        self,
        owner: str,
        name: str,
        submit: Callable[[], Result],
        refused_late: Callable[[PortalError], None],
    ) -> Result | None:
        """Return what `submit` does, or None if it goes on; raises what it raises.

        What it raises later is handed to `refused_late` instead.
        """
        submission = _Submission(submit, refused_late)
        self._run_for_owner(owner, name, submission.run)
        is_long = self._waiting.acquire(blocking=False)
        try:
            return submission.outcome(self._wait if is_long else self._short_wait)
        finally:
            if is_long:
                self._waiting.release()


class _Submission(Generic[Result]):
    """One submission, and the request that waits for it."""

    def __init__(
        self, submit: Callable[[], Result], refused_late: Callable[[PortalError], None]
    ) -> None:
        self._submit = submit
        self._refused_late = refused_late
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._is_awaited = True
        self._result: Result | None = None
        self._error: PortalError | None = None

    def run(self) -> None:
        """Submit."""
        try:
            with own_thread():
                self._result = self._submit()
        except PortalError as error:
            with self._lock:
                self._error = error
                is_late = not self._is_awaited
            if is_late:
                self._refused_late(error)
        finally:
            self._over.set()

    def outcome(self, seconds: float) -> Result | None:
        """What it returned; None if it is not over within this time."""
        self._over.wait(seconds)
        with self._lock:
            if self._error is not None:
                raise self._error
            self._is_awaited = False
        return self._result
