"""Fetches one file: as a part, in several requests if the connection ends, then renamed."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import socket
import ssl
import time
from email.utils import parsedate_to_datetime

from portal.node.file_server import at, in_place
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import shown
from portal.node.file_server.operations.fetching.connecting import get
from portal.node.file_server.operations.kinds.copying import check_put
from portal.node.file_server.operations.request import REPLACE
from portal.node.file_server.replacing import Completion, create_part, set_modified, settle
from portal.node.file_server.roots import Dentry
from portal.node.file_server.tree.tree import identity
from portal.node.file_server.writing import write_pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

    from portal.node.file_server.operations.fetch_rules import FetchRules
    from portal.node.file_server.operations.kinds.placing import Destination
    from portal.node.file_server.operations.operation import Operation

PIECE = 256 * 1024
MOST_ATTEMPTS = 100
MOST_FAILURES = 8
"""Attempts one after the other that bring nothing."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before the next attempt, the last one for all further ones."""
LONGEST_PAUSE = 60.0
HEADERS = {"User-Agent": "Slipway", "Accept": "*/*", "Accept-Encoding": "identity"}
_AGAIN = (408, 425, 429, 500, 502, 503, 504)
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")


def fetch(operation: Operation, to: Destination, rules: FetchRules) -> None:
    """Fetch a file into a folder; raises Refused, OSError, Cancelled."""
    (item,) = operation.items
    if to.is_taken(item.name):
        return
    operation.current = shown(item.name)
    dentry = Dentry(item, to.folder, item.name)
    replaces = operation.on_conflict == REPLACE and to.has_file(item.name)
    if replaces:
        _check_replaceable(dentry)
    part = operation.new_part()
    file = create_part(dentry, part, replace=replaces)
    made = os.fstat(file)
    try:
        operation.parts.append(made.st_ino)
        download = _Download(operation, rules, file)
        download.run()
        if download.modified is not None:
            set_modified(file, download.modified)
        _place(operation, to, dentry, part, file)
        operation.files += 1
    finally:
        os.close(file)
        with contextlib.suppress(OSError):
            if identity(at.status(to.folder, part)) == identity(made):
                at.unlink(to.folder, part)


def _place(operation: Operation, to: Destination, dentry: Dentry, part: bytes, file: int) -> None:
    """Give the complete file its final name; raises Refused, OSError."""
    if operation.on_conflict == REPLACE and to.has_file(dentry.name):
        completion = Completion(replace=True, begin=lambda _inode: _refuse_in_place(dentry))
        settle(dentry, Dentry(dentry.location, to.folder, part), file, completion)
        return
    final = to.put(to.folder, part, dentry.name)
    if final is not None:
        check_put(to.folder, final, identity(os.fstat(file)))


def _check_replaceable(dentry: Dentry) -> None:
    """Raise Refused for a file that would be written in place: a crash would leave half of it."""
    with at.opened(dentry.folder, dentry.name, at.PATH) as existing:
        why = in_place.reason(dentry.folder, existing)
    if why:
        raise _not_replaced(dentry, why)


def _refuse_in_place(dentry: Dentry) -> NoReturn:
    raise _not_replaced(dentry, "its group or access list could not be kept")


def _not_replaced(dentry: Dentry, why: str) -> Refused:
    words = f"“{shown(dentry.name)}” is not replaced, since {why}. Fetch it under another name."
    return Refused(409, "in_place", words)


class _Again(Exception):
    """An attempt failed, and another one may succeed; the text says why."""

    def __init__(self, detail: str, pause: float = 0.0) -> None:
        super().__init__(detail)
        self.detail, self.pause = detail, pause


class _Download:
    """A file that arrives in one or more requests."""

    def __init__(self, operation: Operation, rules: FetchRules, file: int) -> None:
        self._operation, self._rules, self._file = operation, rules, file
        space = at.space(file)
        self._free = space.f_bavail * space.f_frsize if space.f_blocks else None
        self._position = 0
        self._validator = ""
        """The entity tag or time by which the server recognizes the version that we have."""
        self._digest: Any = hashlib.sha256()
        self.modified: float | None = None

    def run(self) -> None:
        """Receive the file; raises Refused, OSError, Cancelled."""
        failures = 0
        for _ in range(MOST_ATTEMPTS):
            before = self._position
            try:
                self._attempt()
                break
            except _Again as error:
                problem = error
            failures = 0 if self._position > before else failures + 1
            if failures >= MOST_FAILURES:
                raise _failed(problem.detail)
            self._pause(problem.pause or PAUSES[min(failures, len(PAUSES) - 1)])
        else:
            raise _failed("The connection ended too often.")
        expected = self._operation.sha256
        if expected and self._digest.hexdigest() != expected:
            raise Refused(409, "checksum", "What was fetched does not have this SHA-256.", "sha256")

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + min(seconds, LONGEST_PAUSE)
        while time.monotonic() < until:
            self._operation.check()
            time.sleep(0.1)

    def _attempt(self) -> None:
        """Receive what is missing; raises _Again, Refused, OSError, Cancelled."""
        headers = HEADERS
        if self._position and self._validator:
            more = {"Range": f"bytes={self._position}-", "If-Range": self._validator}
            headers = {**HEADERS, **more}
        with _network_errors():
            answer = get(self._rules, self._operation.url, headers)
        with answer as response:
            total = self._begin(response)
            self._operation.size_total = total
            self._check_size(total or 0)
            for piece in write_pieces(self._file, _pieces(response), self._position):
                self._position += len(piece)
                self._digest.update(piece)
                self._check_size(self._position)
                self._operation.add_bytes(len(piece))
        if total is not None and self._position != total:
            raise _Again("The connection ended too early.")

    def _begin(self, response: http.client.HTTPResponse) -> int | None:
        """Prepare for a response; returns the size of the whole file, None if it is unknown.

        Raises _Again, Refused.
        """
        if response.status == 206:
            match = _RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
            if not match or int(match[1]) != self._position or match[3] == "*":
                self._restart()
                raise _Again("The server sent another part than was requested.")
            return int(match[3])
        self._restart()
        if response.status in (416, *_AGAIN):
            pause = response.headers.get("Retry-After", "")
            words = f"The server says {response.status} {response.reason}."
            raise _Again(words, float(pause) if pause.isdecimal() else 0.0)
        if response.status != 200:
            raise _failed(f"The server says {response.status} {response.reason}.")
        tag, changed = (response.headers.get(name, "") for name in ("ETag", "Last-Modified"))
        self._validator = tag if tag and not tag.startswith("W/") else changed
        self.modified = _time(changed)
        if response.length is None and not response.chunked and not self._operation.sha256:
            detail = "The server does not say how long it is, so it could be cut off unnoticed."
            raise _failed(f"{detail} Add its SHA-256.")
        return response.length

    def _restart(self) -> None:
        os.ftruncate(self._file, 0)
        self._position, self._operation.size = 0, 0
        self._validator, self._digest = "", hashlib.sha256()

    def _check_size(self, size: int) -> None:
        if self._free is not None and size > self._free:
            detail = f"It has more than the {self._free:,} bytes that are free."
            raise Refused(507, "full", detail)


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    while True:
        with _network_errors():
            piece = response.read(PIECE)
        if not piece:
            return
        yield piece


@contextlib.contextmanager
def _network_errors() -> Iterator[None]:
    """Raise Refused for errors that remain, _Again for others."""
    try:
        yield
    except ssl.SSLCertVerificationError as error:
        detail = f"The server's certificate is not accepted: {error.verify_message}."
        raise _failed(detail) from error
    except socket.gaierror as error:
        if error.errno == socket.EAI_NONAME:
            raise _failed("There is no host of this name.") from error
        raise _Again("The host's name cannot be looked up.") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Again(f"The connection failed ({_words(error)}).") from error


def _words(error: Exception) -> str:
    text = error.strerror if isinstance(error, OSError) else ""
    return (text or str(error) or type(error).__name__)[:200]


def _failed(detail: str) -> Refused:
    return Refused(409, "fetch", f"It could not be fetched: {detail}", "url")


def _time(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp() if text else None
    except (TypeError, ValueError, OverflowError):
        return None
