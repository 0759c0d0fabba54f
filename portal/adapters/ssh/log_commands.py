"""Commands that read logs and output files as their owner, with a POSIX shell and GNU dd and stat.

The file is where its owner decides, so anything may be in its place: a FIFO without a writer, an
endless device, a link. Only a regular file is read, it is opened without blocking, and never more
than requested is read. The portal's own logs are not links; what a job writes to may be one, which
is followed as far as its owner may.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from portal.adapters.ssh.command import Completed
from portal.adapters.ssh.shell.home import ENTER
from portal.core.jobs.output import FilePiece, FileState

MISSING, FOLDER, NO_FILE, UNREADABLE = 3, 4, 5, 6
"""Exit codes: what there is in place of a regular file."""
SECONDS = 10
LEEWAY = 4096
"""Bytes that may come besides the requested ones."""

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
    # stat says why: there is none, or a folder on the way to it may not be searched.
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
    """Print the size of the file and where the piece begins, then up to `limit` bytes.

    Without an offset, they are the last ones; from an offset past the end, the first ones: the
    file was written anew.
    """
    start = _TAIL if offset is None else f"start={offset:d}; [ $start -le $size ] || start=0"
    begin = 'echo "$size $start"; [ "$2" -gt 0 ] || exit 0'
    return _shell((*_LOOK, start, begin, _READ.format(links="")), path, str(limit))


def piece_parse(done: Completed, limit: int) -> FilePiece | None:
    """Parse what piece_argv printed; None if it failed for another reason than the file's state."""
    why = (done.stderr.strip().splitlines() or [""])[-1].rpartition(": ")[2][:200]
    if done.code == MISSING:
        gone = why == "No such file or directory"
        return FilePiece(state=FileState.MISSING if gone else FileState.UNREADABLE, why=why)
    if done.code in _STATES:
        return FilePiece(state=_STATES[done.code], why=why)
    head, _, data = done.stdout.partition(b"\n")
    numbers = re.fullmatch(rb"([0-9]{1,18}) ([0-9]{1,18})", head)
    if done.code != 0 or numbers is None:
        return None
    return FilePiece(data[:limit], int(numbers[2]), int(numbers[1]))


def _shell(steps: Sequence[str], *words: str) -> list[str]:
    command = ["env", "LC_ALL=C", "timeout", "--kill-after=1", str(SECONDS)]
    return [*command, "/bin/sh", "-c", "\n".join(steps), "sh", *words]
