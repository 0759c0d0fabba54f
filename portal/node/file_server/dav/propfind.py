"""PROPFIND: properties of files and folders; the reply is sent while a folder is read."""

from __future__ import annotations

import functools
import os
import stat
from typing import NamedTuple

from portal.node.file_server import at
from portal.node.file_server.dav import documents, properties
from portal.node.file_server.dav.documents import DAV, element
from portal.node.file_server.errors import Refused
from portal.node.file_server.http import XML, XML_HEAD
from portal.node.file_server.location import PART_PREFIX, Location
from portal.node.file_server.locks import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from portal.node.file_server.http import Request
    from portal.node.file_server.locks import Lock, Place
    from portal.node.file_server.roots import Roots
    from portal.node.file_server.user_files import UserFiles

_PIECE = 64 * 1024
"""Bytes of XML that are sent together."""


class _Requested:
    """The properties that a client requests; no document means all."""

    def __init__(self, document: bytes) -> None:
        self.named: list[str] | None = None
        """Only these; None for all that RFC 4918 defines, and the dead ones."""
        self.included: list[str] = []
        """Besides all."""
        self.names_only = False
        if document:
            self._read(document)

    def _read(self, document: bytes) -> None:
        root = documents.parse(document, DAV + "propfind")
        prop = root.find(DAV + "prop")
        self.names_only = root.find(DAV + "propname") is not None
        if prop is not None:
            self.named = list(dict.fromkeys(each.tag for each in prop))
        elif not self.names_only and root.find(DAV + "allprop") is None:
            documents.refuse("Ask for “prop”, “allprop” or “propname”.")
        for include in root.iterfind(DAV + "include"):
            self.included += [each.tag for each in include]


class _Entry(NamedTuple):
    location: Location
    status: os.stat_result | None
    dead: Callable[[], Mapping[str, str]]
    """Reads the dead properties, as XML by name."""
    locks: Iterable[Lock]


def answer(files: UserFiles, request: Request, location: Location) -> None:
    """Answer PROPFIND with depth 0 or 1; raises Refused."""
    depth = request.headers.get("Depth", "infinity").lower()
    if depth == "infinity":
        condition = "<D:propfind-finite-depth/>"
        raise Refused(403, "depth", "Ask for the depth 0 or 1.", "Depth", condition=condition)
    if depth not in ("0", "1"):
        raise Refused(400, "value", "The depth is 0 or 1.", "Depth")
    requested = _Requested(documents.read(request))
    entries = _entries(files, location, depth == "1")
    first = next(entries)
    request.reply(207, {"Content-Type": XML}, None)
    text = XML_HEAD + documents.MULTISTATUS + _response(requested, first)
    for entry in entries:
        text += _response(requested, entry)
        if len(text) > _PIECE:
            request.chunk(text.encode())
            text = ""
    request.chunk((text + documents.END).encode())
    request.end_chunks()


def _entries(files: UserFiles, location: Location, inside: bool) -> Iterator[_Entry]:
    """Yield the entry itself and, with `inside`, the entries of a folder; raises Refused.

    The parent of the roots is not a directory: its status is None.
    """
    if not location.root:
        yield _Entry(location, None, dict, ())
        for root in files.roots if inside else ():
            yield _Entry(Location(root.name), None, dict, ())
        return
    place: Place | None = None
    if files.locks:
        with files.roots.resolve(location, follow=False, to_show=True) as dentry:
            place = place_of(dentry)
    with files.roots.resolve(location, to_show=True) as dentry:
        status = dentry.status()
        dead = functools.partial(properties.dead_at, dentry.folder, dentry.name)
        yield _Entry(location, status, dead, files.locks.covering(place) if place else ())
    if inside and stat.S_ISDIR(status.st_mode):
        for entry in _inside(files.roots, location):
            locks = files.locks.covering((*place, entry.location.name)) if place else ()
            yield entry._replace(locks=locks)


def _inside(roots: Roots, location: Location) -> Iterator[_Entry]:
    above: set[tuple[int, int]] | None = None
    with roots.folder(location) as folder:
        for name in at.names(folder):
            status = None if name.startswith(PART_PREFIX) else _status(folder, name)
            child = location.child(name)
            dead = functools.partial(properties.dead_at, folder, name)
            if status is not None and stat.S_ISLNK(status.st_mode):
                if above is None:
                    above = set(_above(roots, location))
                status = _behind(roots, child, above)
                dead = functools.partial(_dead_behind, roots, child)
            if status is not None and stat.S_IFMT(status.st_mode) in (stat.S_IFREG, stat.S_IFDIR):
                yield _Entry(child, status, dead, ())


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


def _dead_behind(roots: Roots, location: Location) -> dict[str, str]:
    """The dead properties of a link's target."""
    try:
        with roots.resolve(location) as dentry:
            return properties.dead_at(dentry.folder, dentry.name)
    except Refused:
        return {}


def _above(roots: Roots, location: Location) -> Iterable[tuple[int, int]]:
    for depth in range(len(roots.area(location).names), len(location.names) + 1):
        with roots.folder(Location(location.root, location.names[:depth])) as folder:
            status = os.fstat(folder)
            yield status.st_dev, status.st_ino


def _response(requested: _Requested, entry: _Entry) -> str:
    location, status, read_dead, locks = entry
    present: list[str] = []
    missing: list[str] = []
    dead: Mapping[str, str] | None = None
    named = requested.named
    if named is None:
        dead = read_dead()
        named = list(dict.fromkeys((*properties.ALL, *dead, *requested.included)))
    for name in named:
        value = properties.live(name, location, status, locks)
        if value is not None:
            present.append(element(name, "" if requested.names_only else value))
            continue
        dead = read_dead() if dead is None else dead
        if name in dead:
            present.append(element(name) if requested.names_only else dead[name])
        elif requested.named is not None or name in requested.included:
            missing.append(element(name))
    is_folder = status is None or stat.S_ISDIR(status.st_mode)
    return documents.response(
        properties.href(location, is_folder=is_folder),
        (("200 OK", "".join(present), ""), ("404 Not Found", "".join(missing), "")),
    )
