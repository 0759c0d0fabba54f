"""Contents of files: GET with ranges, PUT that replaces a file atomically, DELETE."""

from __future__ import annotations

import os
import re
import sys
from email.utils import formatdate

from portal.node.file_server import at
from portal.node.file_server.entries import entry, etag
from portal.node.file_server.errors import Refused, no_such
from portal.node.file_server.headers import content_type, disposition, parse_time
from portal.node.file_server.roots import Dentry, open_file
from portal.node.file_server.uploads.records import REFUSE, REPLACE
from portal.node.file_server.uploads.whole import Body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.user_files import UserFiles

PIECE = 256 * 1024
TIME = "X-OC-Mtime"
_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")


def send_file(files: UserFiles, request: Request, location: Location) -> None:
    """Answer GET and HEAD for a file."""
    with os.fdopen(files.roots.open(location), "rb", 0) as file:
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
    """First byte, end, and whether it is a partial response; raises Refused (416)."""
    match = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    condition = request.headers.get("If-Range")
    if match is None or match[0] == "bytes=-" or condition not in (None, tag):
        return 0, size, False
    if not match[1]:
        first, end = max(size - _position(match[2]), 0), size
    else:
        first = _position(match[1])
        end = min(_position(match[2]) + 1, size) if match[2] else size
    if first >= end:
        raise Refused(416, "range", f"The file has {size} bytes.")
    return first, end, True


def _position(digits: str) -> int:
    """A position in a range, at most 2⁶³ - 1, which no file exceeds."""
    return int(digits[-19:]) if len(digits.lstrip("0")) < 20 else sys.maxsize


def _send(request: Request, file: int, first: int, end: int) -> None:
    os.posix_fadvise(file, first, end - first, os.POSIX_FADV_SEQUENTIAL)
    position = first
    while position < end:
        piece = os.pread(file, min(PIECE, end - position), position)
        if not piece:  # truncated meanwhile: the client notices the missing bytes
            request.close_connection = True
            return
        request.wfile.write(piece)
        position += len(piece)


# Writing


def receive_file(files: UserFiles, request: Request, location: Location) -> None:
    """Answer PUT: the file is replaced, or overwritten, after all of it has arrived.

    `If-None-Match: *` refuses to replace a file, `If-Match` to replace another version of it;
    `X-OC-Mtime` (of rclone and other WebDAV clients) sets its time.
    """
    time = request.headers.get(TIME, "")
    modified = parse_time(time, TIME) if time else None
    with files.roots.resolve(location, to_change=True) as dentry:
        current = _state(dentry)
        _check_conditions(request, current)

        def check(existing: os.stat_result | None) -> None:
            _check_conditions(request, existing)

        on_conflict = REFUSE if request.headers.get("If-None-Match") == "*" else REPLACE
        body = Body(request.body(), request.length, check)
        files.uploads.save(dentry, body, on_conflict=on_conflict, modified=modified)
    saved = entry(files.roots, location)
    if modified is not None and abs(saved["modified"] - modified) < 1:
        request.always["X-OC-MTime"] = "accepted"
    request.reply_json(saved, 201 if current is None else 200)


def _state(dentry: Dentry) -> os.stat_result | None:
    if dentry.name == b".":
        raise Refused(409, "folder", "This is a folder.")
    try:
        os.close(open_file(dentry, os.O_WRONLY))
        return dentry.status()
    except FileNotFoundError:
        return None


def _check_conditions(request: Request, current: os.stat_result | None) -> None:
    expected = request.headers.get("If-Match")
    if request.headers.get("If-None-Match") == "*" and current is not None:
        raise Refused(409, "exists", "A file of this name exists already.")
    if expected and (current is None or (expected != "*" and expected != etag(current))):
        raise Refused(412, "changed", "The file has changed since you opened it.")


def remove_file(files: UserFiles, request: Request, location: Location) -> None:
    """Answer DELETE for one file or link; folders are deleted by an operation."""
    with files.roots.resolve(location, follow=False, to_change=True) as dentry:
        if dentry.name == b".":
            raise no_such()
        at.unlink(dentry.folder, dentry.name)
    request.reply(204)
