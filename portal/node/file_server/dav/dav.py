"""WebDAV at /data/dav/<location>, RFC 4918 class 1: no locks, no properties of the client's own."""

from __future__ import annotations

import contextlib
import stat
from urllib.parse import urlsplit

from portal.node.file_server import at, contents
from portal.node.file_server.dav import propfind, tree
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, parse, shown
from portal.node.file_server.operations.protected import Protected, above
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from portal.node.file_server.http import Request
    from portal.node.file_server.roots import Place, Roots

PREFIX = "/data/dav/"
_READING = ("OPTIONS", "PROPFIND")
METHODS = "OPTIONS, PROPFIND, GET, HEAD, PUT, MKCOL, DELETE, COPY, MOVE"


def answer(roots: Roots, request: Request, path: str) -> None:
    """Answer a request to /data/dav/<path>; raises Refused."""
    location, method = parse(path), request.command
    known = method in _CALLS or method in _MOVES
    if not known or (location == roots.area(location) and method not in _READING):
        raise Refused(405, "method", "This address does not accept that kind of request.")
    if method in _MOVES:
        _MOVES[method](roots, Protected(roots, roots.deadlines), location, request)
    else:
        _CALLS[method](roots, location, request)


def _options(_roots: Roots, _location: Location, request: Request) -> None:
    request.reply(200, {"DAV": "1", "Allow": METHODS, "MS-Author-Via": "DAV"})


def _put(roots: Roots, location: Location, request: Request) -> None:
    _check_parent(roots, location)
    contents.receive_file(roots, location, request)


def _make_folder(roots: Roots, location: Location, request: Request) -> None:
    if request.length != 0:
        raise Refused(415, "type", "A folder is created without contents.")
    _check_parent(roots, location)
    with roots.place(location, follow=False, to_change=True) as place:
        try:
            at.make_folder(place.folder, place.name)
        except FileExistsError:
            raise Refused(405, "exists", "Something of this name exists already.") from None
    request.reply(201)


def _check_parent(roots: Roots, location: Location) -> None:
    """Raise Refused (409, as the RFC has it) if the folder for something new is missing."""
    try:
        with roots.folder(location.parent):
            pass
    except Refused as refused:
        if refused.status == 404:
            raise Refused(409, "no_folder", "The folder for it does not exist.") from None
        raise


def _delete(roots: Roots, protected: Protected, location: Location, request: Request) -> None:
    with roots.place(location, follow=False, to_change=True) as place:
        tree.remove(place, protected)
    request.reply(204)


def _copy(roots: Roots, protected: Protected, location: Location, request: Request) -> None:
    alone = request.headers.get("Depth", "infinity") == "0"
    with (
        roots.place(location, follow=False, to_change=True) as source,
        _target(roots, source, request) as (
            target,
            existed,
        ),
    ):
        if alone and stat.S_ISDIR(source.status().st_mode):
            tree.copy_folder_alone(source, target)
        else:
            tree.copy(source, target, protected, replace=existed)
    request.reply(204 if existed else 201)


def _move(roots: Roots, protected: Protected, location: Location, request: Request) -> None:
    with (
        roots.place(location, follow=False, to_change=True) as source,
        _target(roots, source, request) as (
            target,
            existed,
        ),
    ):
        tree.move(source, target, protected, replace=existed)
    request.reply(204 if existed else 201)


@contextlib.contextmanager
def _target(roots: Roots, source: Place, request: Request) -> Iterator[tuple[Place, bool]]:
    """The place of the Destination header, and whether it replaces something; raises Refused."""
    status = source.status()
    location = _destination(request)
    _check_parent(roots, location)
    with roots.place(location, follow=False, to_change=True) as place:
        if location == source.location or identity(status) in above(place.folder):
            detail = f"“{shown(source.name)}” cannot be copied or moved into itself."
            raise Refused(403, "into_itself", detail, "Destination")
        overwrite = request.headers.get("Overwrite", "T")
        yield place, _replaces(place, stat.S_ISDIR(status.st_mode), overwrite)


def _destination(request: Request) -> Location:
    parts = urlsplit(request.headers.get("Destination", ""))
    if parts.netloc and parts.netloc != request.headers.get("Host", ""):
        raise Refused(502, "other_server", "This is the address of another server.", "Destination")
    location = parse(parts.path[len(PREFIX) :])
    if not parts.path.startswith(PREFIX) or not location.names:
        raise Refused(409, "value", "This is no address of a file here.", "Destination")
    return location


def _replaces(place: Place, by_folder: bool, overwrite: str) -> bool:
    """Whether a file is to be replaced; raises Refused (412) if something may not be."""
    try:
        mode = place.status().st_mode
    except FileNotFoundError:
        return False
    if overwrite.upper() == "F":
        raise Refused(412, "exists", "Something of this name exists already.", "Destination")
    if by_folder or not stat.S_ISREG(mode):
        # The RFC would delete a whole folder here, which nobody expects of a copy.
        detail = f"“{shown(place.name)}” exists already. Delete it first."
        raise Refused(412, "exists", detail, "Destination")
    return True


_CALLS: Mapping[str, Callable[[Roots, Location, Request], None]] = {
    "OPTIONS": _options,
    "PROPFIND": propfind.answer,
    "GET": contents.send_file,
    "HEAD": contents.send_file,
    "PUT": _put,
    "MKCOL": _make_folder,
}
_MOVES: Mapping[str, Callable[[Roots, Protected, Location, Request], None]] = {
    "DELETE": _delete,
    "MOVE": _move,
    "COPY": _copy,
}
"""These keep the storage areas, and shared folders, in their places."""
