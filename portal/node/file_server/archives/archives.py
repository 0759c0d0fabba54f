"""Answers GET and POST /data/archive/<location>: a folder, or some of it, as an archive."""

from __future__ import annotations

import os
from urllib.parse import parse_qsl, urlsplit

from portal.node.file_server import at
from portal.node.file_server.archives.sources import Filler
from portal.node.file_server.archives.tars import TarArchive
from portal.node.file_server.archives.zips import ZipArchive
from portal.node.file_server.errors import Refused
from portal.node.file_server.headers import disposition
from portal.node.file_server.location import check_name, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from portal.node.file_server.archives.sources import Archive
    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.roots import Roots
    from portal.node.file_server.user_files import UserFiles

TYPES = {"zip": "application/zip", "tar": "application/x-tar"}
PIECE = 256 * 1024
MOST_FIELDS = 10_010
MOST_FORM = 8 * 1024 * 1024
"""Bytes."""


def send_archive(files: UserFiles, request: Request, location: Location) -> None:
    """Create an archive while it is sent; a client that disconnects ends this."""
    fields = _fields(request)
    kind = fields.get("format", [b"zip"])[-1].decode("ascii", "replace")
    if kind not in TYPES:
        raise Refused(422, "value", "Write zip or tar.", "format")
    names = [check_name(name, "name") for name in dict.fromkeys(fields.get("name", []))]
    files.deadlines.call(location.root, lambda: _check(files.roots, location, names))
    folder_name = location.name or os.fsencode(location.root)
    title = names[0] if len(names) == 1 else folder_name
    headers = {
        "Content-Type": TYPES[kind],
        "Content-Disposition": disposition(title + b"." + kind.encode(), True),
        "Cache-Control": "private, no-store",
    }
    if request.command == "HEAD":
        request.reply(200, headers, None)
        return
    with files.roots.folder(location) as folder:
        request.reply(200, headers, None)
        _send(request, kind, folder, [(name, name) for name in names] or [(b".", folder_name)])


def _send(request: Request, kind: str, folder: int, items: list[tuple[bytes, bytes]]) -> None:
    output = _Output(request)
    archive: Archive = TarArchive(output.write) if kind == "tar" else ZipArchive(output.write)
    filler = Filler(archive)
    for name, path in items:
        filler.add(folder, name, path)
    filler.finish()
    archive.close()
    output.flush()
    request.end_chunks()


class _Output:
    """A buffer that sends its contents in pieces of a useful size."""

    def __init__(self, request: Request) -> None:
        self._send: Callable[[bytes], None] = request.chunk
        self._waiting = bytearray()

    def write(self, piece: bytes) -> None:
        self._waiting += piece
        if len(self._waiting) >= PIECE:
            self.flush()

    def flush(self) -> None:
        self._send(bytes(self._waiting))
        self._waiting.clear()


def _fields(request: Request) -> dict[str, list[bytes]]:
    """The values of the query and, for names that do not fit into a URL, of a form.

    Values are the original bytes. Raises Refused.
    """
    text = urlsplit(request.path).query
    if request.command == "POST":
        form = b"".join(bytes(piece) for piece in request.body(MOST_FORM))
        text += "&" + form.decode("ascii", "replace")
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="surrogateescape", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        words = f"Name up to {MOST_FIELDS - 10:,} files and folders."
        raise Refused(422, "value", words, "name") from None
    fields: dict[str, list[bytes]] = {}
    for key, value in pairs:
        fields.setdefault(key, []).append(value.encode("utf-8", "surrogateescape"))
    return fields


def _check(roots: Roots, location: Location, names: list[bytes]) -> None:
    with roots.folder(location) as folder:
        for name in names:
            try:
                at.status(folder, name)
            except FileNotFoundError:
                words = f"“{shown(name)}” is not in this folder."
                raise Refused(404, "not_found", words, "name") from None
