"""Submits jobs in background threads; a few requests wait long for theirs, others briefly.

sbatch takes as long as slurmctld and the user's shell let it. A class that launches together would
otherwise hold all threads of the web application, while nobody else is answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from portal.core.threads import background_thread
from portal.errors import PortalError
from portal.services.owner_queue import RunForOwner
from portal.services.request_waits import RequestWaits

WAIT = 20.0
"""Seconds that a few requests wait for their submissions (RequestWaits), to show refusals."""
SHORT_WAIT = 1.0
"""Seconds that the others wait: usually sbatch takes half a second."""
THREADS = 4
"""Submissions at once of a web process."""

Result = TypeVar("Result")


class Submissions:
    """Runs submissions, each owner's in their order; owners take turns."""

    def __init__(
        self,
        run_for_owner: RunForOwner,
        wait: float = WAIT,
        short_wait: float = SHORT_WAIT,
        long_waits: threading.BoundedSemaphore | None = None,
    ) -> None:
        self._run_for_owner = run_for_owner
        self._waits = RequestWaits(wait, short_wait, long_waits)

    def run(
        self,
        owner: str,
        name: str,
        submit: Callable[[], Result],
        refused_late: Callable[[PortalError], None],
    ) -> Result | None:
        """Return the result of `submit`, or None if it goes on; raises its errors.

        Later errors are handed to `refused_late` instead.
        """
        submission = _Submission(submit, refused_late)
        self._run_for_owner(owner, name, submission.run)
        return submission.outcome(self._waits)


class _Submission(Generic[Result]):
    """One submission, and the request that waits for it."""

    def __init__(
        self, submit: Callable[[], Result], refused_late: Callable[[PortalError], None]
    ) -> None:
        self._submit = submit
        self._refused_late = refused_late
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._is_awaited = True
        self._result: Result | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Submit."""
        try:
            with background_thread():
                self._result = self._submit()
        except Exception as error:
            with self._lock:
                self._error = error
                is_late = not self._is_awaited
            if is_late:
                if not isinstance(error, PortalError):
                    raise  # a fault of ours, which the thread logs
                self._refused_late(error)
        finally:
            self._ended.set()

    def outcome(self, waits: RequestWaits) -> Result | None:
        """The result; None if the submission goes on. Raises the error of one that has failed."""
        waits.wait(self._ended)
        with self._lock:
            if self._error is not None:
                raise self._error
            self._is_awaited = False
        return self._result
