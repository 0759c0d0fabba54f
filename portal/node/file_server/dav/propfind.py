"""PROPFIND: the entries of a folder as XML."""

from __future__ import annotations

import os
import stat
from email.utils import formatdate
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from portal.node.file_server import at
from portal.node.file_server.entries import etag
from portal.node.file_server.errors import Refused
from portal.node.file_server.headers import content_type
from portal.node.file_server.location import PART_PREFIX, Location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from portal.node.file_server.http import Request
    from portal.node.file_server.roots import Roots
    from portal.node.file_server.user_files import UserFiles

_MOST_XML = 64 * 1024
_PIECE = 64 * 1024
"""Bytes of XML that are sent together."""
_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n<D:multistatus xmlns:D="DAV:">\n'
_DAV = "DAV:"


class _Requested:
    """The properties that a client requests; none named means all."""

    def __init__(self, body: bytes) -> None:
        self.names: list[tuple[str, str]] = []
        """Namespaces and names."""
        self._path: list[str] = []
        if body:
            self._parse(body)

    def _parse(self, body: bytes) -> None:
        parser = expat.ParserCreate(namespace_separator="\n")
        parser.StartDoctypeDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = lambda _name: self._path.pop()
        try:
            parser.Parse(body, True)
        except expat.ExpatError:
            self._refuse()

    def _refuse(self, *_: object) -> None:
        raise Refused(400, "value", "This is not XML without a document type.")

    def _start(self, name: str, _attributes: object) -> None:
        self._path.append(name)
        if self._path[:-1] == ["DAV:\npropfind", "DAV:\nprop"]:
            space, _, local = name.rpartition("\n")
            self.names.append((space, local))


def answer(files: UserFiles, request: Request, location: Location) -> None:
    """Answer PROPFIND with depth 0 or 1; raises Refused."""
    depth = request.headers.get("Depth", "infinity")
    if depth not in ("0", "1"):
        raise Refused(403, "depth", "Ask for the depth 0 or 1.", "Depth")
    requested = _Requested(b"".join(map(bytes, request.body(_MOST_XML))))
    entries = _entries(files.roots, location, depth == "1")
    first = next(entries)
    request.reply(207, {"Content-Type": "application/xml; charset=utf-8"}, None)
    text = _HEAD + _response(requested, *first)
    for entry in entries:
        text += _response(requested, *entry)
        if len(text) > _PIECE:
            request.chunk(text.encode())
            text = ""
    request.chunk((text + "</D:multistatus>\n").encode())
    request.end_chunks()


def _entries(
    roots: Roots, location: Location, inside: bool
) -> Iterator[tuple[Location, os.stat_result | None]]:
    """Yield the entry itself and, with `inside`, the entries of a folder; raises Refused.

    The parent of the roots is not a directory: its status is None.
    """
    if not location.root:
        yield location, None
        for root in roots if inside else ():
            yield Location(root.name), None
        return
    with roots.resolve(location, to_show=True) as dentry:
        status = dentry.status()
    yield location, status
    if inside and stat.S_ISDIR(status.st_mode):
        yield from _inside(roots, location)


def _inside(roots: Roots, location: Location) -> Iterator[tuple[Location, os.stat_result]]:
    above: set[tuple[int, int]] | None = None
    with roots.folder(location) as folder:
        for name in at.names(folder):
            status = None if name.startswith(PART_PREFIX) else _status(folder, name)
            child = location.child(name)
            if status is not None and stat.S_ISLNK(status.st_mode):
                if above is None:
                    above = set(_above(roots, location))
                status = _behind(roots, child, above)
            if status is not None and stat.S_IFMT(status.st_mode) in (stat.S_IFREG, stat.S_IFDIR):
                yield child, status


def _status(folder: int, name: bytes) -> os.stat_result | None:
    try:
        return at.status(folder, name)
    except OSError:
        return None  # deleted meanwhile


def _behind(roots: Roots, location: Location, above: set[tuple[int, int]]) -> os.stat_result | None:
    """The status of a link's target; None if it is outside, or a parent (an endless loop)."""
    try:
        with roots.resolve(location) as dentry:
            status = dentry.status()
    except Refused:
        return None
    return None if (status.st_dev, status.st_ino) in above else status


def _above(roots: Roots, location: Location) -> Iterable[tuple[int, int]]:
    for depth in range(len(roots.area(location).names), len(location.names) + 1):
        with roots.folder(Location(location.root, location.names[:depth])) as folder:
            status = os.fstat(folder)
            yield status.st_dev, status.st_ino


def _response(requested: _Requested, location: Location, status: os.stat_result | None) -> str:
    properties = _properties(location, status)
    is_folder = "getcontentlength" not in properties
    href = "/data/dav/" + str(location) + ("/" if is_folder and location.root else "")
    names = requested.names or [(_DAV, name) for name in properties]
    present = [
        f"<D:{n}>{properties[n]}</D:{n}>" for space, n in names if space == _DAV and n in properties
    ]
    missing = [_empty(*each) for each in names if each[0] != _DAV or each[1] not in properties]
    return (
        f"<D:response><D:href>{escape(href)}</D:href>"
        + _propstat(present, "200 OK")
        + _propstat(missing, "404 Not Found")
        + "</D:response>\n"
    )


def _propstat(properties: list[str], status: str) -> str:
    if not properties:
        return ""
    return (
        f"<D:propstat><D:prop>{''.join(properties)}</D:prop>"
        f"<D:status>HTTP/1.1 {status}</D:status></D:propstat>"
    )


def _empty(space: str, name: str) -> str:
    return f"<{name} xmlns={quoteattr(space)}/>"


def _properties(location: Location, status: os.stat_result | None) -> dict[str, str]:
    """Property values by name, as XML."""
    if status is None:
        return {"resourcetype": "<D:collection/>"}
    properties = {
        "getlastmodified": formatdate(status.st_mtime, usegmt=True),
        "getetag": escape(etag(status)),
    }
    if stat.S_ISDIR(status.st_mode):
        return {"resourcetype": "<D:collection/>", **properties}
    return {
        "resourcetype": "",
        "getcontentlength": str(status.st_size),
        "getcontenttype": escape(content_type(location.name)),
        **properties,
    }
