"""Commands that read a session's log as its owner, with a POSIX shell and GNU dd and stat.

The log is a file in the owner's home, so anything may be in its place: a FIFO without a writer, an
endless device, a link. Only a regular file is read, it is opened without blocking, and never more
than requested is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

NO_FILE = 5
"""Exit code if it is not a regular file."""
SECONDS = 10
LEEWAY = 4096
"""Bytes that may come besides the requested ones."""

_CHECK = (
    "cd || exit 1",
    '[ -e "$1" ] || [ -L "$1" ] || exit 0',
    f'[ -f "$1" ] && [ ! -L "$1" ] || exit {NO_FILE}',
)
_SIZE = 'size=$(stat --format=%s -- "$1") || exit 1'
# The file may have been replaced since the check: opening does not block, links are not followed,
# and dd stops after `limit` bytes in any case.
_READ = (
    'exec dd if="$1" iflag=nonblock,nofollow,skip_bytes,count_bytes,fullblock bs=64K '
    'skip="$start" count="$2" status=none'
)


def read_argv(file: str, offset: int, limit: int) -> list[str]:
    """Print up to `limit` bytes from `offset` on; nothing if that is past the end."""
    steps = (_SIZE, f'start={offset:d}; [ "$start" -lt "$size" ] || exit 0')
    return _shell((*_CHECK, *steps, _READ), file, str(limit))


def tail_argv(file: str, limit: int) -> list[str]:
    """Print the last `limit` bytes."""
    steps = (_SIZE, "start=$((size > $2 ? size - $2 : 0))")
    return _shell((*_CHECK, *steps, _READ), file, str(limit))


def size_argv(file: str) -> list[str]:
    """Print the number of bytes."""
    return _shell((*_CHECK, _SIZE, 'echo "$size"'), file)


def size_parse(output: bytes) -> int:
    """Parse the output of size_argv; 0 if there is no file."""
    text = output.decode(errors="replace").strip()
    return int(text) if re.fullmatch(r"[0-9]{1,18}", text) else 0


def _shell(steps: Sequence[str], *words: str) -> list[str]:
    command = ["env", "LC_ALL=C", "timeout", "--kill-after=1", str(SECONDS)]
    return [*command, "/bin/sh", "-c", "\n".join(steps), "sh", *words]
