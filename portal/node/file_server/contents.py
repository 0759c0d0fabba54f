"""Contents of files: read whole or in ranges, and written so that no half is ever seen."""

from __future__ import annotations

import contextlib
import math
import os
import re
import secrets
import sys
from email.utils import formatdate
from mimetypes import guess_type
from urllib.parse import quote

from portal.node.file_server import at
from portal.node.file_server.entries import entry, etag
from portal.node.file_server.errors import Refused, no_such
from portal.node.file_server.location import PART_PREFIX, Location
from portal.node.file_server.replacing import create_part, settle
from portal.node.file_server.roots import Place, Roots, open_file
from portal.node.file_server.uploads.writing import write_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from portal.node.file_server.http import Request

PIECE = 256 * 1024
SMALL = 8 * 1024 * 1024
"""Bytes up to which a file is written without a record of it."""
TIME = "X-OC-Mtime"
_MOST_SECONDS = 1e11
"""Since the epoch: later times do not fit into file systems."""
_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")


def send_file(roots: Roots, location: Location, request: Request) -> None:
    """Answer GET and HEAD for a file."""
    with os.fdopen(roots.open(location), "rb", 0) as file:
        status = os.fstat(file.fileno())
        tag = etag(status)
        headers = {
            "ETag": tag,
            "Last-Modified": formatdate(status.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
            "Content-Type": content_type(location.name),
            "Content-Disposition": disposition(location.name, "download" in request.query),
            "Cache-Control": "private, no-cache",
        }
        if request.headers.get("If-None-Match") == tag:
            request.reply(304, headers)
            return
        first, end, is_part = _range(request, status.st_size, tag)
        if is_part:
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{status.st_size}"
        request.reply(206 if is_part else 200, headers, end - first)
        if request.command != "HEAD":
            _send(request, file.fileno(), first, end)


def _range(request: Request, size: int, tag: str) -> tuple[int, int, bool]:
    """First byte, end, and whether this is only a part; raises Refused (416)."""
    found = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    condition = request.headers.get("If-Range")
    if found is None or found[0] == "bytes=-" or condition not in (None, tag):
        return 0, size, False
    if not found[1]:
        first, end = max(size - _position(found[2]), 0), size
    else:
        first = _position(found[1])
        end = min(_position(found[2]) + 1, size) if found[2] else size
    if first >= end:
        raise Refused(416, "range", f"The file has {size} bytes.")
    return first, end, True


def _position(digits: str) -> int:
    """A position in a range; no file has more than 2⁶³ bytes."""
    return int(digits[-19:]) if len(digits.lstrip("0")) < 20 else sys.maxsize


def _send(request: Request, file: int, first: int, end: int) -> None:
    os.posix_fadvise(file, first, end - first, os.POSIX_FADV_SEQUENTIAL)
    position = first
    while position < end:
        piece = os.pread(file, min(PIECE, end - position), position)
        if not piece:  # it was made shorter meanwhile: the client sees that some is missing
            request.close_connection = True
            return
        request.wfile.write(piece)
        position += len(piece)


def content_type(name: bytes) -> str:
    """The media type by a file's name; text is UTF-8."""
    found, encoding = guess_type(os.fsdecode(name).encode("utf-8", "replace").decode())
    if found is None or encoding:
        return "application/octet-stream"
    return f"{found}; charset=utf-8" if found.startswith("text/") else found


def disposition(name: bytes, download: bool) -> str:
    """The header Content-Disposition (RFC 6266)."""
    plain = re.sub(r'[^ -~]|["\\%]', "_", os.fsdecode(name).encode("ascii", "replace").decode())
    coded = quote(os.fsdecode(name).encode("utf-8", "replace"), safe="")
    kind = "attachment" if download else "inline"
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{coded}"


# Writing


def receive_file(roots: Roots, location: Location, request: Request) -> None:
    """Answer PUT: the file is replaced at once, when all of it has arrived.

    `If-None-Match: *` refuses to replace one, `If-Match` to replace another than was read;
    `X-OC-Mtime` (of rclone and other WebDAV clients) gives it a time.
    """
    modified = _wanted_time(request)
    with roots.place(location, to_change=True) as place:
        known = _state(place)
        _check_conditions(request, known)
        replace = request.headers.get("If-None-Match") != "*"
        with _part(request, location) as part:
            write(place, request.body(), replace=replace, modified=modified, part=part)
    request.reply_json(entry(roots, location), 201 if known is None else 200)


def _part(request: Request, location: Location) -> contextlib.AbstractContextManager[bytes]:
    """The name while it is written; a large file's is recorded, since it could be left over."""
    if request.length is not None and request.length <= SMALL:
        return contextlib.nullcontext(new_part())
    return request.uploads.noted(location)


def new_part() -> bytes:
    """A name for a file that is being written."""
    return PART_PREFIX + secrets.token_hex(8).encode()


def _wanted_time(request: Request) -> float | None:
    text = request.headers.get(TIME, "")
    if not text:
        return None
    time = parse_time(text, TIME)
    request.always["X-OC-MTime"] = "accepted"
    return time


def parse_time(text: str, field: str) -> float:
    """A time in seconds since the epoch, perhaps with decimals; raises Refused."""
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not abs(time) < _MOST_SECONDS:
        raise Refused(422, "value", "This is not a time in seconds since 1970.", field)
    return time


def _state(place: Place) -> os.stat_result | None:
    if place.name == b".":
        raise Refused(409, "folder", "This is a folder.")
    try:
        os.close(open_file(place, os.O_WRONLY))
        return place.status()
    except FileNotFoundError:
        return None


def _check_conditions(request: Request, known: os.stat_result | None) -> None:
    wanted = request.headers.get("If-Match")
    if request.headers.get("If-None-Match") == "*" and known is not None:
        raise Refused(409, "exists", "A file of this name exists already.")
    if wanted and (known is None or (wanted != "*" and wanted != etag(known))):
        raise Refused(412, "changed", "The file has changed since you opened it.")


def write(
    place: Place,
    body: Iterable[bytes | memoryview],
    *,
    replace: bool,
    modified: float | None = None,
    part: bytes = b"",
) -> None:
    """Write a file under another name first, and give it its name when it is complete.

    Raises Refused as replacing.settle.
    """
    part = part or new_part()
    file = create_part(place, part)
    try:
        for _ in write_pieces(file, body):
            pass
        if modified is not None:
            set_modified(file, modified)
        settle(place, part, file, replace=replace)
    except BaseException:
        with contextlib.suppress(OSError):
            at.unlink(place.folder, part)
        raise
    finally:
        os.close(file)


def set_modified(file: int, seconds: float) -> None:
    """Set when an open file was modified; raises OSError."""
    nanoseconds = int(seconds * 1e9)
    at.set_times(file, nanoseconds, nanoseconds)


def remove_file(roots: Roots, location: Location, request: Request) -> None:
    """Answer DELETE for one file or link; folders are deleted by an operation."""
    with roots.place(location, follow=False, to_change=True) as place:
        if place.name == b".":
            raise no_such()
        at.unlink(place.folder, place.name)
    request.reply(204)
