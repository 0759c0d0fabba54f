"""Slots in a folder: each process counts in one slot's files, which a later process continues.

So counters survive restarts, the number of files is bounded, and no file has to be deleted while
a process may still count in it.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

SLOTS = 64
"""Concurrent processes; gunicorn has two by default, the worker is one."""
FILE_BYTES = 1 << 20
"""Room for all series of one process; allocated at once, since a write to a file that is mapped
into memory and finds no room ends the process (SIGBUS)."""
KINDS = ("counter", "histogram")


class Slots:
    """Claims a slot for this process, and another one for each process that it forks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._claimed: dict[int, tuple[int, int]] = {}
        """Slot and lock descriptor by process id: a forked process inherits its parent's entry,
        and does not use it."""

    def identifier(self) -> int:
        """The slot of this process; raises OSError without a free slot or room for its files."""
        pid = os.getpid()
        if pid not in self._claimed:
            self._claimed[pid] = self._claim()
        return self._claimed[pid][0]

    def _claim(self) -> tuple[int, int]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for slot in range(SLOTS):
            lock = os.open(self._folder / f"{slot}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(lock)
                continue
            try:
                for kind in KINDS:
                    _allocate(self._folder / f"{kind}_{slot}.db")
            except OSError:
                os.close(lock)
                raise
            return slot, lock
        raise OSError(f"all {SLOTS} slots in {self._folder} are taken")


def _allocate(file: Path) -> None:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, FILE_BYTES)
    finally:
        os.close(descriptor)
