"""The contents of an archive, and a list of files that are left out."""

from __future__ import annotations

import contextlib
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.errors import Refused, refusal_of
from portal.node.file_server.location import PART_PREFIX, shown
from portal.node.file_server.roots import kind_words, open_regular
from portal.node.file_server.tree.tree import ENTER, ITEM, LEAVE, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    class Archive(Protocol):
        """A format of archives."""

        def folder(self, path: bytes, status: os.stat_result) -> None:
            """Add a folder."""

        def link(self, path: bytes, status: os.stat_result, target: bytes) -> None:
            """Add a link."""

        def file(self, path: bytes, status: os.stat_result, pieces: Iterator[bytes]) -> None:
            """Add a file; the pieces may be fewer bytes than its status says, never more."""

        def text(self, path: bytes, text: bytes) -> None:
            """Add a generated text file."""

        def close(self) -> None:
            """Write the end."""


PIECE = 256 * 1024
MOST_LEFT_OUT = 10_000
LEFT_OUT = b"left out.txt"


class Filler:
    """Adds trees to an archive and, at the end, a list of the files that were left out."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._left_out: list[str] = []
        self._left_out_count = 0
        self._top: set[bytes] = set()

    def add(self, folder: int, name: bytes, shown_name: bytes) -> None:
        """Add a file or tree, under another name; raises only errors of the connection."""
        self._top.add(shown_name)
        with Tree(folder) as tree:
            steps = tree.steps(name)
            while True:
                try:
                    step = next(steps, None)
                except (OSError, Refused) as error:
                    self._leave_out(shown_name, _words(error))
                    return
                if step is None:
                    return
                path = b"/".join((shown_name, *tree.below(step)))
                if step.name.startswith(PART_PREFIX):
                    step.skip = True
                elif step.kind == ENTER:
                    self._archive.folder(path, step.status)
                elif step.kind == ITEM:
                    self._item(tree.folder, step.name, step.status, path)
                elif step.kind != LEAVE and step.error is not None:
                    self._leave_out(path, _words(step.error))

    def _item(self, folder: int, name: bytes, status: os.stat_result, path: bytes) -> None:
        if stat.S_ISLNK(status.st_mode):
            try:
                target = at.read_link(folder, name)
            except OSError as error:
                self._leave_out(path, _words(error))
                return
            self._archive.link(path, status, target)
            return
        try:
            file = open_regular(folder, name)
        except Refused as error:
            is_special = error.code == "special"
            words = f"{kind_words(status.st_mode)}, not a file" if is_special else error.detail
            self._leave_out(path, words)
        except OSError as error:
            self._leave_out(path, _words(error))
        else:
            with os.fdopen(file, "rb", 0) as opened:
                self._file(opened.fileno(), path)

    def _file(self, file: int, path: bytes) -> None:
        status = os.fstat(file)
        os.posix_fadvise(file, 0, status.st_size, os.POSIX_FADV_SEQUENTIAL)
        reader = Reader(file, status.st_size)
        self._archive.file(path, status, reader.pieces())
        if reader.error:
            self._leave_out(path, f"only its first {reader.read:,} bytes: {reader.error}")
        elif os.fstat(file).st_mtime_ns != status.st_mtime_ns:
            self._leave_out(path, "It is there, but it changed while it was read.")

    def _leave_out(self, path: bytes, words: str) -> None:
        self._left_out_count += 1
        if self._left_out_count <= MOST_LEFT_OUT:
            self._left_out.append(f"{shown(path)!r}: {words}\n")

    def finish(self) -> None:
        """Add the list of files that were left out."""
        if not self._left_out_count:
            return
        unlisted = self._left_out_count - len(self._left_out)
        lines = [*self._left_out, f"and {unlisted:,} more\n"] if unlisted else self._left_out
        name, number = LEFT_OUT, 2
        while name in self._top:
            name, number = b"left out (%d).txt" % number, number + 1
        self._archive.text(name, "".join(lines).encode())


class Reader:
    """Reads a file up to the size at its opening, and keeps the reason if that fails."""

    def __init__(self, file: int, size: int) -> None:
        self._file, self._size = file, size
        self.read = 0
        self.error = ""

    def pieces(self) -> Iterator[bytes]:
        """The contents; raises nothing."""
        while self.read < self._size:
            piece = b""
            with contextlib.suppress(OSError):
                piece = os.pread(self._file, min(PIECE, self._size - self.read), self.read)
            if not piece:
                self.error = "it was made shorter, or cannot be read further."
                return
            self.read += len(piece)
            yield piece


def _words(error: OSError | Refused) -> str:
    return error.detail if isinstance(error, Refused) else refusal_of(error).detail
