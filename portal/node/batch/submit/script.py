"""Read the batch script from where sbatch would read it."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from portal.node.batch.options import CommandLine

MAX_BYTES = 64 << 20
"""More than any Slurm accepts (max_script_size is 4 MB by default)."""
PIECE = 1 << 20


class Script:
    """A batch script; `content` is None if sbatch itself has to report why it cannot be read."""

    __slots__ = ("_copy", "_descriptor", "content", "name")

    def __init__(self, content: bytes | None, name: str = "") -> None:
        self.content = content
        self.name = name
        """Its file's name, from which sbatch derives the job's; "" from standard input."""
        self._copy, self._descriptor = -1, 0

    def keep_for(self, descriptor: int) -> None:
        """Keep the content of a pipe, from which it can be read only once."""
        self._copy, self._descriptor = in_memory(self.content or b""), descriptor

    def put_back(self) -> None:
        """Let sbatch read the consumed input again."""
        if self._copy >= 0:
            os.dup2(self._copy, self._descriptor)


def read(line: CommandLine, environment: Mapping[str, str]) -> Script:
    """Read the script that sbatch would submit for this command line."""
    if line.wrap is not None:
        return Script(os.fsencode(line.values.get("wrap", "")))
    if not line.command:
        return _from_descriptor(0, "")
    word = line.command[0]
    descriptor = open_already(word)
    if descriptor >= 0:
        return _from_descriptor(descriptor, os.path.basename(word))
    try:
        path = find(word, line.chdir, environment)
        content = _from_file(path, wait=bool(line.slipway_options))
    except OSError:
        return Script(None, word)
    return Script(content, os.path.basename(word))


def open_already(path: str) -> int:
    """The descriptor of a file with a name such as /dev/fd/63, as of bash's <(…); -1 for others."""
    if path == "/dev/stdin":
        return 0
    for folder in ("/dev/fd/", "/proc/self/fd/"):
        number = path[len(folder) :]
        if path.startswith(folder) and number.isascii() and number.isdigit():
            return int(number[:9])
    return -1


def _from_file(path: str, *, wait: bool) -> bytes | None:
    """Return the file's content; None for other types. A named pipe is read only with `wait`.

    sbatch could not read the content of such a pipe again. Raises OSError.
    """
    kind = os.stat(path).st_mode
    if not (stat.S_ISREG(kind) or (wait and stat.S_ISFIFO(kind))):
        return None
    flags = os.O_RDONLY | os.O_CLOEXEC | (0 if stat.S_ISFIFO(kind) else os.O_NONBLOCK)
    descriptor = os.open(path, flags)
    try:
        return _read_all(descriptor)
    finally:
        os.close(descriptor)


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


def _from_descriptor(descriptor: int, name: str) -> Script:
    """Read an open file; sbatch reads one with a name, such as /dev/stdin, from its start."""
    try:
        if _is_file(descriptor):
            return Script(_piece_of_file(descriptor, 0 if name else None), name)
        script = Script(_read_all(descriptor), name)
    except OSError:
        return Script(None, name)
    script.keep_for(descriptor)
    return script


def _piece_of_file(descriptor: int, offset: int | None) -> bytes | None:
    """Read a file from `offset`, by default its position, which does not change."""
    content, start = b"", os.lseek(descriptor, 0, os.SEEK_CUR) if offset is None else offset
    while len(content) <= MAX_BYTES:
        piece = os.pread(descriptor, PIECE, start + len(content))
        if not piece:
            return content
        content += piece
    return None


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
    """Create an anonymous file with this content, positioned at its start."""
    descriptor = os.memfd_create("script")
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
