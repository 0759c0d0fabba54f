"""Commands that read logs and output files as their owner, with a POSIX shell and GNU dd and stat.

The file's owner controls its path, which may lead to a FIFO without a writer, an endless device or
a link. Only a regular file is read, it is opened without blocking, and at most the requested number
of bytes is read. The portal's own logs are not links; a job's output file may be one, which is
followed with its owner's permissions.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.adapters.ssh.command import Completed
from portal.adapters.ssh.shell.home import ENTER
from portal.core.jobs.output import FilePiece, FileState

MISSING, FOLDER, NO_FILE, UNREADABLE = 3, 4, 5, 6
"""Exit codes if the path is not a readable regular file."""
SECONDS = 10
LEEWAY = 4096
"""Bytes that may be printed in addition to the requested ones."""

_CHECK = (
    ENTER,
    '[ -e "$1" ] || [ -L "$1" ] || exit 0',
    f'[ -f "$1" ] && [ ! -L "$1" ] || exit {NO_FILE}',
)
_SIZE = 'size=$(stat --format=%s -- "$1") || exit 1'
# The file may have been replaced since the check: opening does not block, links are not followed,
# and dd stops after `limit` bytes in any case.
_READ = (
    'exec dd if="$1" iflag=nonblock,{links}skip_bytes,count_bytes,fullblock bs=64K '
    'skip="$start" count="$2" status=none'
)
_READ_LOG = _READ.format(links="nofollow,")

_LOOK = (
    f'[ -d "$1" ] && exit {FOLDER}',
    # stat prints the reason: no such file, or a folder on its path is not searchable.
    f'size=$(stat --dereference --format=%s -- "$1") || exit {MISSING}',
    f'[ -f "$1" ] || exit {NO_FILE}',
    f'[ -r "$1" ] || {{ echo "Permission denied" >&2; exit {UNREADABLE}; }}',
)
_STATES = {
    FOLDER: FileState.FOLDER,
    NO_FILE: FileState.SPECIAL,
    UNREADABLE: FileState.UNREADABLE,
}


def read_argv(file: str, offset: int, limit: int) -> list[str]:
    """Print up to `limit` bytes from `offset` on; nothing if that is past the end."""
    steps = (_SIZE, f'start={offset:d}; [ "$start" -lt "$size" ] || exit 0')
    return _shell((*_CHECK, *steps, _READ_LOG), file, str(limit))


def tail_argv(file: str, limit: int) -> list[str]:
    """Print the last `limit` bytes."""
    steps = (_SIZE, _TAIL)
    return _shell((*_CHECK, *steps, _READ_LOG), file, str(limit))


_TAIL = "start=$((size > $2 ? size - $2 : 0))"


def size_argv(file: str) -> list[str]:
    """Print the number of bytes."""
    return _shell((*_CHECK, _SIZE, 'echo "$size"'), file)


def size_parse(output: bytes) -> int:
    """Parse the output of size_argv; 0 if there is no file."""
    text = output.decode(errors="replace").strip()
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0


def piece_argv(path: str, offset: int | None, limit: int) -> list[str]:
    """Print the size of the file and the start of the piece, then up to `limit` bytes.

    Without an offset, these are the last bytes; with an offset past the end, the first bytes, since
    the file was rewritten.
    """
    start = _TAIL if offset is None else f"start={offset:d}; [ $start -le $size ] || start=0"
    begin = 'echo "$size $start"; [ "$2" -gt 0 ] || exit 0'
    return _shell((*_LOOK, start, begin, _READ.format(links="")), path, str(limit))


def piece_parse(result: Completed, limit: int) -> FilePiece | None:
    """Parse the output of piece_argv; None if it failed, unless the file's state is the reason."""
    reason = (result.stderr.strip().splitlines() or [""])[-1].rpartition(": ")[2][:200]
    if result.code == MISSING:
        is_missing = reason == "No such file or directory"
        return FilePiece(
            state=FileState.MISSING if is_missing else FileState.UNREADABLE, why=reason
        )
    if result.code in _STATES:
        return FilePiece(state=_STATES[result.code], why=reason)
    head, _, data = result.stdout.partition(b"\n")
    numbers = re.fullmatch(rb"([0-9]{1,18}) ([0-9]{1,18})", head)
    if result.code != 0 or numbers is None:
        return None
    return FilePiece(data[:limit], int(numbers[2]), int(numbers[1]))


def _shell(steps: Sequence[str], *arguments: str) -> list[str]:
    command = ["env", "LC_ALL=C", "timeout", "--kill-after=1", str(SECONDS)]
    return [*command, "/bin/sh", "-c", "\n".join(steps), "sh", *arguments]
