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
    from portal.node.file_server.roots import Dentry, Roots
    from portal.node.file_server.user_files import UserFiles

PREFIX = "/data/dav/"
_READING = ("OPTIONS", "PROPFIND")
METHODS = "OPTIONS, PROPFIND, GET, HEAD, PUT, MKCOL, DELETE, COPY, MOVE"


def answer(files: UserFiles, request: Request, location: Location) -> None:
    """Answer a request to /data/dav/<location>; raises Refused."""
    roots, method = files.roots, request.command
    supported = method in _CALLS or method in _MOVES
    if not supported or (location == roots.area(location) and method not in _READING):
        raise Refused(405, "method", "This address does not accept that kind of request.")
    if method in _MOVES:
        _MOVES[method](roots, Protected(roots, roots.deadlines), request, location)
    else:
        _CALLS[method](files, request, location)


def _options(_files: UserFiles, request: Request, _location: Location) -> None:
    request.reply(200, {"DAV": "1", "Allow": METHODS, "MS-Author-Via": "DAV"})


def _put(files: UserFiles, request: Request, location: Location) -> None:
    _check_parent(files.roots, location)
    contents.receive_file(files, request, location)


def _make_folder(files: UserFiles, request: Request, location: Location) -> None:
    if request.length != 0:
        raise Refused(415, "type", "A folder is created without contents.")
    _check_parent(files.roots, location)
    with files.roots.resolve(location, follow=False, to_change=True) as dentry:
        try:
            at.make_folder(dentry.folder, dentry.name)
        except FileExistsError:
            raise Refused(405, "exists", "Something of this name exists already.") from None
    request.reply(201)


def _check_parent(roots: Roots, location: Location) -> None:
    """Raise Refused (409, as RFC 4918 says) if the parent folder is missing."""
    try:
        with roots.folder(location.parent, to_show=True):
            pass
    except Refused as refused:
        if refused.status == 404:
            raise Refused(409, "no_folder", "The folder for it does not exist.") from None
        raise


def _delete(roots: Roots, protected: Protected, request: Request, location: Location) -> None:
    with roots.resolve(location, follow=False, to_change=True) as dentry:
        tree.remove(dentry, protected)
    request.reply(204)


def _copy(roots: Roots, protected: Protected, request: Request, location: Location) -> None:
    alone = request.headers.get("Depth", "infinity") == "0"
    with (
        roots.resolve(location, follow=False, to_change=True) as source,
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


def _move(roots: Roots, protected: Protected, request: Request, location: Location) -> None:
    with (
        roots.resolve(location, follow=False, to_change=True) as source,
        _target(roots, source, request) as (
            target,
            existed,
        ),
    ):
        tree.move(source, target, protected, replace=existed)
    request.reply(204 if existed else 201)


@contextlib.contextmanager
def _target(roots: Roots, source: Dentry, request: Request) -> Iterator[tuple[Dentry, bool]]:
    """Resolve the Destination header; yields it and whether a file is replaced. Raises Refused."""
    status = source.status()
    location = _destination(request)
    _check_parent(roots, location)
    with roots.resolve(location, follow=False, to_change=True) as dentry:
        if location == source.location or identity(status) in above(dentry.folder):
            detail = f"“{shown(source.name)}” cannot be copied or moved into itself."
            raise Refused(403, "into_itself", detail, "Destination")
        overwrite = request.headers.get("Overwrite", "T")
        yield dentry, _replaces(dentry, stat.S_ISDIR(status.st_mode), overwrite)


def _destination(request: Request) -> Location:
    parts = urlsplit(request.headers.get("Destination", ""))
    if parts.netloc and parts.netloc != request.headers.get("Host", ""):
        raise Refused(502, "other_server", "This is the address of another server.", "Destination")
    location = parse(parts.path[len(PREFIX) :])
    if not parts.path.startswith(PREFIX) or not location.names:
        raise Refused(409, "value", "This is not the address of a file here.", "Destination")
    return location


def _replaces(dentry: Dentry, by_folder: bool, overwrite: str) -> bool:
    """Whether a file is replaced; raises Refused (412) if that is not permitted."""
    try:
        mode = dentry.status().st_mode
    except FileNotFoundError:
        return False
    if overwrite.upper() == "F":
        raise Refused(412, "exists", "Something of this name exists already.", "Destination")
    if by_folder or not stat.S_ISREG(mode):
        # RFC 4918 would delete a whole folder here, which users do not expect of a copy.
        detail = f"“{shown(dentry.name)}” exists already. Delete it first."
        raise Refused(412, "exists", detail, "Destination")
    return True


_CALLS: Mapping[str, Callable[[UserFiles, Request, Location], None]] = {
    "OPTIONS": _options,
    "PROPFIND": propfind.answer,
    "GET": contents.send_file,
    "HEAD": contents.send_file,
    "PUT": _put,
    "MKCOL": _make_folder,
}
_MOVES: Mapping[str, Callable[[Roots, Protected, Request, Location], None]] = {
    "DELETE": _delete,
    "MOVE": _move,
    "COPY": _copy,
}
"""Methods that must not move or delete storage areas and shared folders."""
