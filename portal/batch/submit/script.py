"""The batch script: where sbatch would read it, and what is submitted instead for an image."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from portal.batch.options import CommandLine

MAX_BYTES = 64 << 20
"""More than any Slurm accepts (max_script_size is 4 MB by default)."""
PIECE = 1 << 20


class Script:
    """A batch script; `content` is None if sbatch itself has to report why it cannot be read."""

    __slots__ = ("content", "name", "stdin")

    def __init__(self, content: bytes | None, name: str = "", stdin: int = -1) -> None:
        self.content = content
        self.name = name
        """Its file's name, from which sbatch derives the job's; "" from standard input."""
        self.stdin = stdin
        """A file to replace standard input, which has been read; -1 to keep it."""


def read(line: CommandLine, environment: Mapping[str, str]) -> Script:
    """Read the script that sbatch would submit for this command line."""
    if line.wrap is not None:
        return Script(line.values.get("wrap", "").encode("utf-8", "surrogateescape"))
    if not line.command:
        return _from_stdin()
    word = line.command[0]
    try:
        path = find(word, line.chdir, environment)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return Script(None, word)
    try:
        content = _read_all(descriptor) if _is_file(descriptor) else None
    except OSError:
        content = None
    finally:
        os.close(descriptor)
    return Script(content, os.path.basename(word))


def find(word: str, chdir: str, environment: Mapping[str, str]) -> str:
    """The path of a script, as sbatch finds it: in the job's directory, then in PATH."""
    if word.startswith((".", "/")):
        return word
    start = os.path.join(os.getcwd(), chdir)
    for folder in [start, *environment.get("PATH", "").split(":")]:
        path = os.path.join(start, folder, word) if folder.startswith(".") else f"{folder}/{word}"
        if folder and os.path.exists(path):
            return path
    return word


def _is_file(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _from_stdin() -> Script:
    try:
        if _is_file(0):
            content, place = b"", os.lseek(0, 0, os.SEEK_CUR)
            while len(content) <= MAX_BYTES:
                piece = os.pread(0, PIECE, place + len(content))
                if not piece:
                    return Script(content)
                content += piece
            return Script(None)
        piped = _read_all(0)
    except OSError:
        return Script(None)
    return Script(piped, stdin=in_memory(piped or b""))


def _read_all(descriptor: int) -> bytes | None:
    pieces: list[bytes] = []
    size = 0
    while True:
        piece = os.read(descriptor, PIECE)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > MAX_BYTES:
            return None


def in_memory(content: bytes) -> int:
    """A file without a name that has this content and is positioned at its start."""
    descriptor = os.memfd_create("script", 0)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
