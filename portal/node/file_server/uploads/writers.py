"""One writer for each upload at a time; one whose line is dead makes room for the next."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

STALLED = 3.0
"""Seconds without a byte after which a writer is cut off for another one: after a lost line the
old connection can look alive for minutes."""
PATIENCE = 3.0
"""Seconds that a writer gets to end when it is cut off."""


class Writer:
    """A request that writes to an upload."""

    def __init__(self, connection: socket.socket | None) -> None:
        self._connection = connection
        self.last = time.monotonic()
        """When it last did something."""

    def stalled(self) -> bool:
        """Whether nothing has arrived for some time."""
        return time.monotonic() - self.last > STALLED

    def cut(self) -> None:
        """End it: its next read fails."""
        if self._connection is None:
            return
        with contextlib.suppress(OSError):
            # Not the TLS socket's own method, which another thread may not call meanwhile.
            socket.socket.shutdown(self._connection, socket.SHUT_RD)


class Writers:
    """The writers of all uploads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._writers: dict[str, Writer] = {}

    @contextlib.contextmanager
    def alone(
        self, id: str, connection: socket.socket | None = None, *, force: bool = False
    ) -> Iterator[Writer]:
        """Be the only writer of an upload; raises Refused (423) while there is another.

        `force`: it is cut off even if data are arriving.
        """
        mine = Writer(connection)
        deadline = time.monotonic() + PATIENCE
        while (other := self._add(id, mine)) is not None:
            if not (force or other.stalled()) or time.monotonic() > deadline:
                raise locked()
            other.cut()
            time.sleep(0.02)
        try:
            yield mine
        finally:
            with self._lock:
                del self._writers[id]

    def _add(self, id: str, writer: Writer) -> Writer | None:
        """Enter a writer; returns another one that is there already."""
        with self._lock:
            return None if self._writers.setdefault(id, writer) is writer else self._writers[id]


def locked() -> Refused:
    """The answer while another request writes to the same upload."""
    return Refused(423, "locked", "Another request is writing to this upload at the moment.")
