"""One writer for each upload at a time; a stalled one is replaced by the next."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STALLED = 3.0
"""Seconds without data after which another writer replaces one, whose connection may be dead
although TCP notices that only after minutes."""
PATIENCE = 3.0
"""Seconds that a replaced writer has to end."""


class Writer:
    """A request that writes to an upload."""

    def __init__(
        self, connection: socket.socket | None, working: Callable[[], object] | None = None
    ) -> None:
        """`working` is called during long work after all data have arrived."""
        self._connection, self._working = connection, working
        self.last = time.monotonic()
        """Time of the last data."""

    def advanced(self) -> None:
        """Note progress of work that the client waits for."""
        self.last = time.monotonic()
        if self._working is not None:
            self._working()

    def stalled(self) -> bool:
        """Whether no data have arrived for some time."""
        return time.monotonic() - self.last > STALLED

    def cut(self) -> None:
        """Shut down the connection: the next read fails."""
        if self._connection is None:
            return
        with contextlib.suppress(OSError):
            # Not the TLS socket's method: another thread is using that.
            socket.socket.shutdown(self._connection, socket.SHUT_RD)


class Writers:
    """The writers of all uploads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writers: dict[str, Writer] = {}

    @contextlib.contextmanager
    def exclusive(
        self,
        id: str,
        connection: socket.socket | None = None,
        *,
        force: bool = False,
        working: Callable[[], object] | None = None,
    ) -> Iterator[Writer]:
        """Be the only writer of an upload; raises Refused (423) while there is another.

        `force`: the other one is replaced even if data are arriving.
        """
        writer = Writer(connection, working)
        deadline = time.monotonic() + PATIENCE
        while (other := self._add(id, writer)) is not None:
            if not (force or other.stalled()) or time.monotonic() > deadline:
                raise locked()
            other.cut()
            time.sleep(0.02)
        try:
            yield writer
        finally:
            with self._lock:
                del self._writers[id]

    def _add(self, id: str, writer: Writer) -> Writer | None:
        """Register a writer; returns the existing one, if any."""
        with self._lock:
            return None if self._writers.setdefault(id, writer) is writer else self._writers[id]


def locked() -> Refused:
    """The refusal while another request writes to the same upload."""
    return Refused(423, "locked", "Another request is writing to this upload at the moment.")
