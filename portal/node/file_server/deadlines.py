"""Deadlines for file systems that may not answer, such as NFS without its server."""

from __future__ import annotations

import threading
import time

from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    T = TypeVar("T")

SECONDS = 8.0
MOST = 8
"""Calls at once for one storage area; a process that hangs in the kernel cannot be ended."""


class Deadlines:
    """Runs each call in a thread, and abandons calls that take too long.

    While all calls of a storage area are late, further ones are refused at once.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._running: dict[str, list[_Call]] = {}

    def call(
        self,
        area: str,
        function: Callable[[], T],
        seconds: float = SECONDS,
        late: Callable[[T], object] | None = None,
    ) -> T:
        """Return the function's result; raises its exception, or Refused (503, “away”).

        `late` gets the result of an abandoned call, to release it.
        """
        result: list[T] = []
        call = _Call(
            lambda: result.append(function()),
            lambda: late(result.pop()) if late and result else None,
            time.monotonic() + seconds,
        )
        self._begin(area, call)
        threading.Thread(target=self._run, args=(area, call), daemon=True).start()
        call.wait(self._changed)
        return result.pop()

    def is_late(self, area: str) -> bool:
        """Whether any call of a storage area is late."""
        with self._changed:
            return any(call.is_late for call in self._running.get(area, []))

    def _begin(self, area: str, call: _Call) -> None:
        with self._changed:
            while len(running := self._running.get(area, [])) >= self._most:
                left = call.deadline - time.monotonic()
                if left <= 0 or all(other.is_late for other in running):
                    raise away()
                self._changed.wait(min(left, 0.5))
            self._running.setdefault(area, []).append(call)

    def _run(self, area: str, call: _Call) -> None:
        call.run()
        with self._changed:
            self._running[area].remove(call)
            if not self._running[area]:
                del self._running[area]
            call.ended = True
            self._changed.notify_all()
        call.release()


def away() -> Refused:
    """The refusal while a file system does not answer."""
    return Refused(503, "away", "The file system does not answer. Try again in a minute.")


class _Call:
    """A call in a thread."""

    def __init__(
        self, function: Callable[[], None], late: Callable[[], object], deadline: float
    ) -> None:
        self._function, self._late = function, late
        self.deadline = deadline
        self.ended = False
        self._error: BaseException | None = None
        self._abandoned = False

    @property
    def is_late(self) -> bool:
        return time.monotonic() > self.deadline

    def run(self) -> None:
        try:
            self._function()
        except BaseException as error:  # raised in the thread that waits
            self._error = error

    def wait(self, changed: threading.Condition) -> None:
        """Wait for the end; raises the function's exception, or Refused."""
        with changed:
            while not self.ended:
                left = self.deadline - time.monotonic()
                if left <= 0:
                    self._abandoned = True
                    raise away()
                changed.wait(left)
        if self._error is not None:
            raise self._error

    def release(self) -> None:
        """Pass on the result of an abandoned call."""
        if self._abandoned:
            self._late()
