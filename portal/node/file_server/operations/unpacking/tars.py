"""Tar files, read as a stream: nothing of them is kept in memory."""

from __future__ import annotations

import contextlib
import tarfile
from typing import cast

from portal.node.file_server.operations.unpacking.members import (
    FILE,
    FOLDER,
    HARD_LINK,
    LINK,
    SPECIAL,
    ArchiveError,
    Member,
)
from portal.node.file_server.operations.unpacking.reading import DAMAGED, PIECE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO

    from portal.node.file_server.operations.unpacking.reading import Decompressed

MOST_HEADER = 1024 * 1024
"""Bytes of an extended header, which is read at once."""
MOST_GLOBAL = 16 * 1024 * 1024
"""Bytes of all headers that apply to what follows, which are kept."""
MOST_PADDING = 64 * 1024 * 1024
"""Bytes after the mark of the end; usually there are less than 10 KiB."""
_EXTENDED = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


_EMPTY = tarfile.EmptyHeaderError  # type: ignore[attr-defined]
_WRONG = (tarfile.InvalidHeaderError, tarfile.TruncatedHeaderError)  # type: ignore[attr-defined]


class _Info(tarfile.TarInfo):
    """A header; a damaged one is an error, which tarfile takes for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> _Info:
        try:
            return super().fromtarfile(tarfile)
        except _EMPTY:
            cast("_Tar", tarfile).ends_early = True
            raise
        except _WRONG:
            raise ArchiveError(DAMAGED) from None

    def _proc_member(self, tar: _Tar) -> _Info:
        if self.type in _EXTENDED:
            tar.global_bytes += self.size if self.type == tarfile.XGLTYPE else 0
            if self.size > MOST_HEADER or tar.global_bytes > MOST_GLOBAL:
                raise ArchiveError("It has a header that is too large.", "too_large")
        return cast("_Info", super()._proc_member(tar))  # type: ignore[misc]


class _Tar(tarfile.TarFile):
    """A tar file that is read once."""

    tarinfo = _Info
    global_bytes = 0
    ends_early = False


class TarArchive:
    """A tar file."""

    totals: tuple[int, int] | None = None
    ends_early = False

    def __init__(self, stream: Decompressed) -> None:
        self._stream = stream

    def close(self) -> None:
        """End the decompression."""
        self._stream.close()

    def members(self) -> Iterator[Member]:
        """Yield the members; raises ArchiveError."""
        with _damage():
            yield from self._members()

    def _members(self) -> Iterator[Member]:
        stream = cast("IO[bytes]", self._stream)
        with _Tar.open(
            fileobj=stream, mode="r|", encoding="utf-8", errors="surrogateescape"
        ) as tar:
            while (info := tar.next()) is not None:
                yield _member(tar, info)
                tar.members.clear()  # type: ignore[attr-defined]
            self.ends_early = tar.ends_early
        for _ in range(0, MOST_PADDING, PIECE):  # the checksum of the stream follows
            if not self._stream.read(PIECE):
                return
        raise ArchiveError(DAMAGED)


def _member(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    kind = SPECIAL
    if info.isreg():
        kind = FILE
    elif info.isdir():
        kind = FOLDER
    elif info.issym():
        kind = LINK
    elif info.islnk():
        kind = HARD_LINK
    return Member(
        path=_raw(info.name),
        kind=kind,
        size=info.size if kind == FILE else 0,
        mode=info.mode,
        modified=info.mtime,
        target=_raw(info.linkname),
        data=lambda: _data(tar, info),
        is_sparse=info.issparse(),
    )


def _raw(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


def _data(tar: tarfile.TarFile, info: tarfile.TarInfo) -> Iterable[bytes]:
    with _damage():
        file = tar.extractfile(info)
        while file is not None and (piece := file.read(PIECE)):
            yield piece


@contextlib.contextmanager
def _damage() -> Iterator[None]:
    """Raise ArchiveError for errors of tarfile."""
    try:
        yield
    except (tarfile.TarError, ValueError, RecursionError, EOFError) as error:
        raise ArchiveError(DAMAGED) from error
