"""Contents of files: GET with ranges, PUT that replaces a file atomically, DELETE."""

from __future__ import annotations

import os
import re
import sys
from email.utils import formatdate

from portal.node.file_server import at, preconditions
from portal.node.file_server.entries import entry, etag
from portal.node.file_server.errors import Refused, no_such
from portal.node.file_server.headers import content_type, disposition, parse_time
from portal.node.file_server.roots import Dentry, open_file
from portal.node.file_server.uploads.records import REFUSE, REPLACE
from portal.node.file_server.uploads.whole import Body

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.roots import Roots
    from portal.node.file_server.user_files import UserFiles

    Check = Callable[[Roots, Request, Location], None]

PIECE = 256 * 1024
TIME = "X-OC-Mtime"
_RANGE = re.compile(r"bytes=([0-9]*)-([0-9]*)")


def send_file(files: UserFiles, request: Request, location: Location) -> None:
    """Answer GET and HEAD for a file."""
    with os.fdopen(files.roots.open(location), "rb", 0) as file:
        status = os.fstat(file.fileno())
        headers = {
            "ETag": etag(status),
            "Last-Modified": formatdate(status.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
            "Content-Type": content_type(location.name),
            "Content-Disposition": disposition(location.name, "download" in request.query),
            "Cache-Control": "private, no-cache",
        }
        if preconditions.evaluate(request, status):
            request.reply(304, headers)
            return
        first, end, is_part = _range(request, status)
        if is_part:
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{status.st_size}"
        request.reply(206 if is_part else 200, headers, end - first)
        if request.command != "HEAD":
            _send(request, file.fileno(), first, end)


def _range(request: Request, status: os.stat_result) -> tuple[int, int, bool]:
    """First byte, end, and whether it is a partial response; raises Refused (416)."""
    size = status.st_size
    match = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if match is None or match[0] == "bytes=-" or request.command != "GET":
        return 0, size, False
    if not preconditions.permits_range(request, status):
        return 0, size, False
    if not match[1]:
        first, end = max(size - _position(match[2]), 0), size
    else:
        first = _position(match[1])
        end = min(_position(match[2]) + 1, size) if match[2] else size
    if first >= end:
        headers = {"Content-Range": f"bytes */{size}"}
        raise Refused(416, "range", f"The file has {size} bytes.", "Range", headers=headers)
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


def receive_file(
    files: UserFiles, request: Request, location: Location, check: Check = preconditions.check
) -> None:
    """Answer PUT: the file is replaced, or overwritten, after all of it has arrived.

    `check` raises Refused if a condition of the request is not met. It is called before the body
    is received and again before the file is replaced, since others may change it meanwhile.
    `X-OC-Mtime` (of rclone and other WebDAV clients) sets the file's time.
    """
    time = request.headers.get(TIME, "")
    modified = parse_time(time, TIME) if time else None
    with files.roots.resolve(location, to_change=True) as dentry:
        is_new = _is_new(dentry)
        check(files.roots, request, location)
        _save(files, request, dentry, check, modified)
        headers = {"ETag": etag(dentry.status())}
    saved = entry(files.roots, location)
    if modified is not None and abs(saved["modified"] - modified) < 1:
        request.always["X-OC-MTime"] = "accepted"
    request.reply_json(saved, 201 if is_new else 200, headers)


def _save(
    files: UserFiles, request: Request, dentry: Dentry, check: Check, modified: float | None
) -> None:
    def check_again(_existing: os.stat_result | None) -> None:
        check(files.roots, request, dentry.location)

    on_conflict = REFUSE if preconditions.demands_new(request) else REPLACE
    body = Body(request.body(), request.length, check_again)
    try:
        files.uploads.save(dentry, body, on_conflict=on_conflict, modified=modified)
    except Refused as error:
        if error.code == "exists":  # created by somebody else meanwhile
            raise preconditions.exists() from error
        raise


def _is_new(dentry: Dentry) -> bool:
    """Whether PUT creates the file; raises Refused or OSError if it cannot be replaced."""
    if dentry.name == b".":
        raise Refused(409, "folder", "This is a folder.")
    try:
        os.close(open_file(dentry, os.O_WRONLY))
    except FileNotFoundError:
        return True
    return False


def remove_file(files: UserFiles, request: Request, location: Location) -> None:
    """Answer DELETE for one file or link; folders are deleted by an operation."""
    with files.roots.resolve(location, follow=False, to_change=True) as dentry:
        if dentry.name == b".":
            raise no_such()
        dentry.status()  # raises if there is none, to which preconditions do not apply
        preconditions.check(files.roots, request, location)
        at.unlink(dentry.folder, dentry.name)
    request.reply(204)
