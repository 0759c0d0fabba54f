"""The walk through a folder by descriptors: no link is followed, no other file system entered."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from portal.node.file_server import at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

DEEPEST = 200
"""Levels; each holds a descriptor open."""


@dataclass(frozen=True)
class OpenFile:
    """An open file or folder; a walk closes `descriptor` when it goes on."""

    descriptor: int
    """O_PATH."""
    names: tuple[bytes, ...]
    """From the folder where the walk began; () for that folder."""
    status: os.stat_result

    @property
    def path(self) -> str:
        """A path of the descriptor, for system calls that take only paths."""
        return at.descriptor_path(self.descriptor)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.status.st_mode)


def walk(top: int, problems: list[OpenFile]) -> Iterator[OpenFile]:
    """Yield the open folder, then its contents: regular files and folders only.

    A folder comes before its contents, which are listed only then. Folders that cannot be entered,
    or are deeper than DEEPEST, are added to `problems`, whose descriptors are closed.
    """
    status = os.fstat(top)
    yield OpenFile(top, (), status)
    levels = [_Level(top, ())]
    try:
        while levels:
            level = levels[-1]
            name = level.next_name()
            if name is None:
                levels.pop().close()
                continue
            descriptor = _open(level, name)
            if descriptor is None:
                continue
            try:
                file = OpenFile(descriptor, (*level.names, name), os.fstat(descriptor))
                if file.status.st_dev != status.st_dev or not _is_plain(file):
                    continue
                yield file
                if file.is_folder and (below := _enter(file, levels, problems)):
                    levels.append(below)
            finally:
                os.close(descriptor)
    finally:
        for level in levels:
            level.close()


class _Level:
    def __init__(self, folder: int, names: tuple[bytes, ...]) -> None:
        self.names = names
        self.folder = at.reopen(folder, at.READ_FOLDER)
        try:
            self._waiting = at.names(self.folder)
        except BaseException:
            os.close(self.folder)
            raise

    def next_name(self) -> bytes | None:
        return self._waiting.pop() if self._waiting else None

    def close(self) -> None:
        os.close(self.folder)


def _open(level: _Level, name: bytes) -> int | None:
    try:
        return at.open_at(level.folder, name, at.PATH)
    except OSError:
        return None  # deleted meanwhile


def _is_plain(file: OpenFile) -> bool:
    return file.is_folder or stat.S_ISREG(file.status.st_mode)


def _enter(file: OpenFile, levels: list[_Level], problems: list[OpenFile]) -> _Level | None:
    if len(levels) < DEEPEST:
        try:
            return _Level(file.descriptor, file.names)
        except OSError:
            pass
    problems.append(file)
    return None
