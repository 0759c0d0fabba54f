"""Who waits for the provider: at most two threads of a process, and not for long."""

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
"""For all questions of one visitor."""
WAIT_SECONDS = SECONDS + 1
"""How long the visitor waits for the outcome, after two at most for a place: ten in all.

It ends only where a name is not resolved, or one of several addresses after another is silent.
"""
AT_ONCE = 2
_NAME = "OpenID Connect"
"""Stands for all visitors in the process's budget of threads: no account is called like that."""
_end: contextvars.ContextVar[float | None] = contextvars.ContextVar("end", default=None)

T = TypeVar("T")


class Busy(Unavailable):
    """Others wait for the provider already."""


def seconds_left() -> float:
    """How long the visitor whose turn it is still waits."""
    end = _end.get()
    return SECONDS if end is None else end - time.monotonic()


class Turns:
    """Runs questions to the provider in threads of their own, and waits for them briefly.

    Resolving a name has no deadline. A turn lasts until its thread has ended, also when its visitor
    waits no more, so that no more threads than turns hang.
    """

    def __init__(self, title: str, budget: ThreadBudget | None = None) -> None:
        """`title`: the provider's name; `budget`: of the process's threads."""
        self._title = title
        self._budget = budget
        self._places = ThreadBudget(AT_ONCE + RESERVED)  # one name gets all but those

    def run(self, work: Callable[[], T]) -> T:
        """The result; raises what `work` raises, Busy, or Unavailable if it takes too long.

        Work within work belongs to the same turn.
        """
        if _end.get() is not None:
            return work()
        with ExitStack() as waiting:
            try:
                if self._budget:
                    waiting.enter_context(self._budget.thread(_NAME))
                outcome = self._start(work)
            except (Unavailable, RuntimeError) as error:  # no place, or no thread
                raise Busy(
                    f"Too many people wait for {self._title} or the cluster at the moment. Try "
                    "again in a minute."
                ) from error
            try:
                return outcome.result(WAIT_SECONDS)
            except TimeoutError:
                raise self.late() from TimeoutError(f"no answer in {WAIT_SECONDS:.0f} s")

    def late(self) -> Unavailable:
        """The error for users that the provider has not answered in time."""
        return Unavailable(f"{self._title} does not answer. Try again in a minute.")

    def _start(self, work: Callable[[], T]) -> Future[T]:
        place, outcome = ExitStack(), Future[T]()
        place.enter_context(self._places.thread(_NAME))

        def turn() -> None:
            with place:
                _end.set(time.monotonic() + SECONDS)
                try:
                    outcome.set_result(work())
                except BaseException as error:  # for the thread that waits
                    outcome.set_exception(error)

        context = contextvars.copy_context()
        try:
            threading.Thread(target=context.run, args=(turn,), daemon=True).start()
        except RuntimeError:
            place.close()
            raise
        return outcome
