"""Locations: the name of a root and a path below it, percent-encoded as in a URL."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import quote, unquote_to_bytes

from portal.node.file_server.errors import Refused, no_such

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 4096
"""Bytes of a path, as in Linux (PATH_MAX)."""
LONGEST_NAME = 255
SAFE = "!$'()*+,:;=@~"
PART_PREFIX = b".slipway-"
"""Prefix of the names of incomplete files, which are neither listed nor accessible."""
MOST_ALTERNATIVES = 10_000
_ENDING = re.compile(rb"(?<=.)(\.tar)?\.[A-Za-z0-9_+-]{1,10}\Z", re.DOTALL)
_NUMBERED = re.compile(rb" \((\d{1,6})\)\Z")


@dataclass(frozen=True)
class Location:
    """A root and the names below it; names are bytes, since Linux's may be in any encoding."""

    root: str
    names: tuple[bytes, ...] = ()

    def __str__(self) -> str:
        return "/".join([quote(self.root, safe=SAFE), *(quote(n, safe=SAFE) for n in self.names)])

    def child(self, name: bytes) -> Location:
        """The location of a name in this folder."""
        return Location(self.root, (*self.names, name))

    @property
    def parent(self) -> Location:
        """The folder that contains it; raises Refused for a root."""
        if not self.names:
            raise Refused(409, "root", "This is the beginning of a storage area.")
        return Location(self.root, self.names[:-1])

    @property
    def name(self) -> bytes:
        """The last name; b"" for a root."""
        return self.names[-1] if self.names else b""


def parse(text: str) -> Location:
    """Parse a location in a percent-encoded URL path; raises Refused."""
    root, *names = text.strip("/").split("/")
    parts = tuple(check_name(unquote_to_bytes(name)) for name in names if name)
    if sum(map(len, parts)) + len(parts) > LONGEST:
        raise Refused(422, "name", "This path is too long.", "path")
    return Location(unquote_to_bytes(root).decode(errors="replace"), parts)


def check_name(name: bytes, field: str = "path") -> bytes:
    """Validate a name that a user may choose; raises Refused."""
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name:
        raise Refused(
            422, "name", "A name must not be empty, “.” or “..”, and contain no “/”.", field
        )
    if len(name) > LONGEST_NAME:
        raise Refused(422, "name", f"A name can have up to {LONGEST_NAME} bytes.", field)
    if name.startswith(PART_PREFIX):
        raise no_such()
    return name


def shown(name: bytes) -> str:
    """Decode a name for display; bytes that are not UTF-8 are replaced."""
    return os.fsdecode(name).encode("utf-8", "replace").decode()


# Names beside one that exists: “report (2).pdf”


def alternatives(name: bytes, *, is_folder: bool) -> Iterator[bytes]:
    """Yield alternative names, numbered before the file name extension."""
    stem, ending = _split(name, is_folder=is_folder)
    numbered = _NUMBERED.search(stem)
    first = 2
    if numbered and numbered.start():
        stem, first = stem[: numbered.start()], int(numbered[1]) + 1
    for number in range(first, first + MOST_ALTERNATIVES):
        yield _joined(stem, b" (%d)" % number + ending)


def marked(name: bytes, mark: bytes) -> bytes:
    """A file's name with a mark before its extension: “report (recovered).pdf”."""
    stem, ending = _split(name, is_folder=False)
    return _joined(stem, b" (" + mark + b")" + ending)


def _split(name: bytes, *, is_folder: bool) -> tuple[bytes, bytes]:
    ending = None if is_folder else _ENDING.search(name)
    return (name[: ending.start()], ending[0]) if ending else (name, b"")


def _joined(stem: bytes, end: bytes) -> bytes:
    """Join them; shortens the stem to whole UTF-8 characters if that is too long."""
    length = min(len(stem), LONGEST_NAME - len(end))
    while 0 < length < len(stem) and stem[length] & 0xC0 == 0x80:
        length -= 1
    return stem[:length] + end
