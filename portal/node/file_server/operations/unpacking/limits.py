"""Limits on what an archive may become: some are made to fill a disk."""

from __future__ import annotations

from portal.node.file_server.operations.unpacking.members import ArchiveError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

MOST_ENTRIES = 1_000_000
MOST_RATIO = 1000
"""Of the sizes of contents and archive; deflate reaches 1032 with zeros alone."""
SMALL = 1024**3
"""Bytes of contents up to which the ratio does not matter."""


class Limits:
    """Counts what is unpacked from an archive of `size` bytes into a file system."""

    def __init__(self, size: int, space: os.statvfs_result) -> None:
        self._archive = size
        self._free = space.f_bavail * space.f_frsize if space.f_blocks else None
        self._free_files = space.f_favail if space.f_files else None
        self._entries = self._bytes = 0

    def check(self, files: int, size: int) -> None:
        """Raise ArchiveError if so many files, of so many bytes together, are too much."""
        if files > MOST_ENTRIES:
            raise ArchiveError(f"It has more than {MOST_ENTRIES:,} entries.", "too_large")
        if self._free_files is not None and files > self._free_files:
            raise ArchiveError("It has more files than the file system has room for.", "full")
        if self._free is not None and size > self._free:
            words = f"It has more than the {self._free:,} bytes that are free."
            raise ArchiveError(words, "full")
        if size > SMALL and size > self._archive * MOST_RATIO:
            words = f"Its contents are more than {MOST_RATIO:,} times as large as the archive."
            raise ArchiveError(f"{words} If they are meant to be, use a terminal.", "too_large")

    def add_entry(self, announced: int) -> None:
        """Count an entry that announces so many bytes; raises ArchiveError."""
        self._entries += 1
        self.check(self._entries, self._bytes + announced)

    def add_bytes(self, count: int) -> None:
        """Count contents; raises ArchiveError."""
        self._bytes += count
        self.check(self._entries, self._bytes)
