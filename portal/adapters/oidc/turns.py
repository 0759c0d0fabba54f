"""Limits waiting for the provider: at most two threads of a process, for some seconds."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TypeVar

from portal.adapters.ssh.per_user import RESERVED, ThreadBudget
from portal.errors import Unavailable

SECONDS = 7.0
"""Deadline of all requests for one visitor."""
WAIT_SECONDS = SECONDS + 1
"""How long the visitor waits for the result, after at most two for a thread: ten in all.

It is reached only if a name is not resolved, or if several addresses in turn do not answer.
"""
AT_ONCE = 2
_NAME = "OpenID Connect"
"""Stands for all visitors in the process's thread budget: no account has this name."""
_end: contextvars.ContextVar[float | None] = contextvars.ContextVar("end", default=None)

T = TypeVar("T")


class Busy(Unavailable):
    """All threads for the provider are in use."""


def seconds_left() -> float:
    """The seconds that remain of the current turn."""
    end = _end.get()
    return SECONDS if end is None else end - time.monotonic()


class Turns:
    """Runs requests to the provider in separate threads, and waits for them briefly.

    Resolving a name has no deadline. A turn lasts until its thread has ended, even after its
    visitor has given up, so that the number of hanging threads is bounded.
    """

    def __init__(self, title: str, budget: ThreadBudget | None = None) -> None:
        """`title`: the provider's name; `budget`: the process's threads."""
        self._title = title
        self._budget = budget
        self._slots = ThreadBudget(AT_ONCE + RESERVED)  # one name may use all but the reserved ones

    def run(self, work: Callable[[], T]) -> T:
        """Run `work` and return its result; a nested call belongs to the same turn.

        Raises the errors of `work`, Busy, or Unavailable if it takes too long.
        """
        if _end.get() is not None:
            return work()
        with ExitStack() as waiting:
            try:
                if self._budget:
                    waiting.enter_context(self._budget.thread(_NAME))
                outcome = self._start(work)
            except (Unavailable, RuntimeError) as error:  # no free slot, or no thread
                raise Busy(
                    f"Too many people wait for {self._title} or the cluster at the moment. Try "
                    "again in a minute."
                ) from error
            try:
                return outcome.result(WAIT_SECONDS)
            except TimeoutError:
                raise self.late() from TimeoutError(f"no answer in {WAIT_SECONDS:.0f} s")

    def late(self) -> Unavailable:
        """The error for users if the provider has not answered in time."""
        return Unavailable(f"{self._title} does not answer. Try again in a minute.")

    def _start(self, work: Callable[[], T]) -> Future[T]:
        slot, outcome = ExitStack(), Future[T]()
        slot.enter_context(self._slots.thread(_NAME))

        def turn() -> None:
            with slot:
                _end.set(time.monotonic() + SECONDS)
                try:
                    outcome.set_result(work())
                except BaseException as error:  # for the thread that waits
                    outcome.set_exception(error)

        context = contextvars.copy_context()
        try:
            threading.Thread(target=context.run, args=(turn,), daemon=True).start()
        except RuntimeError:
            slot.close()
            raise
        return outcome
