"""Members of archives: what a format yields, and which of their names are accepted."""

from __future__ import annotations

from dataclasses import dataclass

from portal.node.file_server.errors import Refused
from portal.node.file_server.location import LONGEST, LONGEST_NAME, PART_PREFIX, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Protocol

    class Archive(Protocol):
        """An open archive."""

        totals: tuple[int, int] | None
        """Entries and bytes; None if these are not known before the end."""
        ends_early: bool
        """Whether the mark of the end is missing; only known after the last member."""

        def members(self) -> Iterator[Member]:
            """Yield the members; the data of each are read before the next. Raises ArchiveError."""

        def close(self) -> None:
            """Release everything but the file."""


FILE, FOLDER, LINK, HARD_LINK, SPECIAL = "file", "folder", "link", "hard link", "special"
LONGEST_TARGET = 4096
_LATEST = 1e11
"""Seconds since 1970 up to which times are kept."""


class ArchiveError(Exception):
    """An archive cannot be unpacked; the text says why, `code` for programs."""

    def __init__(self, detail: str, code: str = "damaged") -> None:
        super().__init__(detail)
        self.detail, self.code = detail, code


@dataclass(frozen=True)
class Member:
    """A file, folder or link in an archive."""

    path: bytes
    """As in the archive."""
    kind: str
    size: int = 0
    """Bytes, as the archive announces them."""
    mode: int | None = None
    """Permissions; None if the archive has none."""
    modified: float | None = None
    """In seconds since 1970."""
    target: bytes = b""
    """Of a link; of a hard link, a path in the archive."""
    data: Callable[[], Iterable[bytes]] = tuple
    is_sparse: bool = False

    @property
    def time(self) -> int | None:
        """The time in nanoseconds; None if there is none, or no file system could keep it."""
        seconds = self.modified
        return None if seconds is None or not abs(seconds) < _LATEST else int(seconds * 1e9)


def names_of(path: bytes) -> tuple[bytes, ...]:
    """The names of a path in an archive, () for the top folder; raises Refused.

    Absolute paths count from the top folder, as with tar and unzip.
    """
    names = tuple(name for name in path.split(b"/") if name not in (b"", b"."))
    if b".." in names or b"\0" in path:
        raise Refused(409, "name", "Its name leads out of the archive. It was left out.")
    if sum(map(len, names)) + len(names) > LONGEST or any(len(n) > LONGEST_NAME for n in names):
        raise Refused(409, "name", "Its name is too long. It was left out.")
    for name in names:
        if name.startswith(PART_PREFIX):
            detail = f"Names such as “{shown(name)}” are used by Slipway itself. It was left out."
            raise Refused(409, "name", detail)
    return names
