"""Alternative names: “report (2).pdf”."""

from __future__ import annotations

import re

from portal.node.file_server.location import LONGEST_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST = 10_000
_ENDING = re.compile(rb"(?<=.)(\.tar)?\.[A-Za-z0-9_+-]{1,10}\Z", re.DOTALL)
_NUMBERED = re.compile(rb" \((\d{1,6})\)\Z")


def alternatives(name: bytes, *, is_folder: bool) -> Iterator[bytes]:
    """Yield alternative names, numbered before the file name extension."""
    ending = None if is_folder else _ENDING.search(name)
    stem, tail = (name[: ending.start()], ending[0]) if ending else (name, b"")
    numbered = _NUMBERED.search(stem)
    first = 2
    if numbered and numbered.start():
        stem, first = stem[: numbered.start()], int(numbered[1]) + 1
    for number in range(first, first + MOST):
        mark = b" (%d)" % number
        yield _cut(stem, LONGEST_NAME - len(mark) - len(tail)) + mark + tail


def _cut(stem: bytes, longest: int) -> bytes:
    """Shorten a name to whole UTF-8 characters."""
    end = min(len(stem), longest)
    while 0 < end < len(stem) and stem[end] & 0xC0 == 0x80:
        end -= 1
    return stem[:end]
