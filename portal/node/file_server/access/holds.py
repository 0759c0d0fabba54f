"""Storage folders in use: access to one is not changed while something is moved out of it."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter

from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Identity = tuple[int, int]


class Holds:
    """Changes and moves in progress, by the identity of the storage folder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._changing: set[Identity] = set()
        self._moving: Counter[Identity] = Counter()

    def begin_change(self, folder: Identity, most: int) -> None:
        """Note that access to a folder is being changed, one of at most `most`; raises Refused."""
        with self._lock:
            self._check_still(folder)
            if self._moving[folder]:
                raise Refused(409, "busy", "Something is being moved out of it. Wait a moment.")
            if len(self._changing) >= most:
                raise Refused(503, "busy", "Other folders are being changed. Wait a moment.")
            self._changing.add(folder)

    def end_change(self, folder: Identity) -> None:
        """Note that a change is over."""
        with self._lock:
            self._changing.remove(folder)

    def is_changing(self, folder: Identity) -> bool:
        """Whether access to a folder is being changed."""
        with self._lock:
            return folder in self._changing

    @contextlib.contextmanager
    def moving(self, folder: Identity) -> Iterator[None]:
        """Hold a folder while it, or something in it, is moved; raises Refused."""
        with self._lock:
            self._check_still(folder)
            self._moving[folder] += 1
        try:
            yield
        finally:
            with self._lock:
                self._moving[folder] -= 1
                if not self._moving[folder]:
                    del self._moving[folder]

    def _check_still(self, folder: Identity) -> None:
        if folder in self._changing:
            raise Refused(
                409, "busy", "Who has access to this folder is being changed. Wait a moment."
            )
