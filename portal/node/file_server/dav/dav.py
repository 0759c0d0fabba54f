"""WebDAV at /data/dav/<location>, RFC 4918 classes 1 and 2: each method to its handler."""

from __future__ import annotations

from portal.node.file_server import at, contents
from portal.node.file_server.dav import guards, locking, propfind, proppatch, transfers
from portal.node.file_server.dav.guards import Changed, check_parent
from portal.node.file_server.errors import Refused, no_method
from portal.node.file_server.location import Location
from portal.node.file_server.operations.request import exists
from portal.node.file_server.roots import Roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from portal.node.file_server.http import Request
    from portal.node.file_server.user_files import UserFiles

    Handler = Callable[[UserFiles, Request, Location], None]

OF_AREAS = "OPTIONS, PROPFIND"
"""The storage areas themselves are only listed."""
OF_FILES = ("GET", "HEAD", "PUT")
"""Not of folders."""


def answer(files: UserFiles, request: Request, location: Location) -> None:
    """Answer a request to /data/dav/<location>; raises Refused or OSError."""
    allowed = _allowed(files, request, location)
    if request.command not in allowed.split(", "):
        raise no_method(allowed)
    _CALLS[request.command](files, request, location)


def _allowed(files: UserFiles, request: Request, location: Location) -> str:
    if location == files.roots.area(location):
        return OF_AREAS
    return OF_AREAS + ", GET, HEAD" if request.read_only else ", ".join(_CALLS)


def _options(files: UserFiles, request: Request, location: Location) -> None:
    """Answer OPTIONS; without class 2, programs mount it read-only."""
    classes = "1" if request.read_only else "1, 2"
    allowed = _allowed(files, request, location)
    request.reply(200, {"DAV": classes, "Allow": allowed, "MS-Author-Via": "DAV"})


def _get(files: UserFiles, request: Request, location: Location) -> None:
    try:
        contents.send_file(files, request, location)
    except Refused as error:
        raise _of_folder(error) from error


def _put(files: UserFiles, request: Request, location: Location) -> None:
    def check(roots: Roots, request: Request, location: Location) -> None:
        with roots.resolve(location, follow=False, to_change=True) as dentry:
            is_new = not exists(dentry.folder, dentry.name)
            guards.check(files, request, location, Changed(dentry, whole=is_new))

    check_parent(files.roots, location)
    try:
        contents.receive_file(files, request, location, check)
    except Refused as error:
        raise _of_folder(error) from error


def _of_folder(error: Refused) -> Refused:
    """The same refusal, or 405 if it is because of a folder."""
    if error.code != "folder":
        return error
    return no_method(", ".join(method for method in _CALLS if method not in OF_FILES))


def _make_folder(files: UserFiles, request: Request, location: Location) -> None:
    if request.length != 0:
        raise Refused(415, "type", "A folder is created without contents.")
    check_parent(files.roots, location)
    with files.roots.resolve(location, follow=False, to_change=True) as dentry:
        if not exists(dentry.folder, dentry.name):
            guards.check(files, request, location, Changed(dentry, whole=True))
        try:
            at.make_folder(dentry.folder, dentry.name)
        except FileExistsError:
            raise _exists() from None
    request.reply(201)


def _exists() -> Refused:
    allowed = ", ".join(method for method in _CALLS if method != "MKCOL")
    words = "Something of this name exists already."
    return Refused(405, "exists", words, headers={"Allow": allowed})


_CALLS: Mapping[str, Handler] = {
    "OPTIONS": _options,
    "PROPFIND": propfind.answer,
    "GET": _get,
    "HEAD": _get,
    "PUT": _put,
    "MKCOL": _make_folder,
    "DELETE": transfers.delete,
    "COPY": transfers.copy,
    "MOVE": transfers.move,
    "PROPPATCH": proppatch.answer,
    "LOCK": locking.lock,
    "UNLOCK": locking.unlock,
}
