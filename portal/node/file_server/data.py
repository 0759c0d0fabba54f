"""Requests of browsers and programs, /data/<area>/<path>, which HAProxy forwards."""

from __future__ import annotations

from portal.node.file_server import contents
from portal.node.file_server.archives.archives import send_archive
from portal.node.file_server.dav import dav
from portal.node.file_server.errors import Refused, no_method, no_such
from portal.node.file_server.location import parse
from portal.node.file_server.uploads import tus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.user_files import UserFiles


def answer(files: UserFiles, request: Request) -> None:
    """Answer one request; raises Refused or OSError."""
    _, _, area, *path = request.route.split("/", 3)
    if area == "uploads":
        tus.answer(files.uploads, request, path[0] if path else "")
        return
    reads = area == "archive" or request.command in ("GET", "HEAD", "OPTIONS", "PROPFIND")
    if request.read_only and not reads:
        raise Refused(403, "permission", "This token was created without “files:write”.")
    if area == "dav":
        location = parse(path[0] if path else "")
        files.reach(location)
        dav.answer(files, request, location)
        return
    if area not in ("files", "archive") or not path:
        raise no_such()
    location = parse(path[0])
    files.reach(location)
    (_archive if area == "archive" else _file)(files, request, location)


def _archive(files: UserFiles, request: Request, location: Location) -> None:
    if request.command not in ("GET", "HEAD", "POST"):
        raise no_method("GET, HEAD, POST")
    send_archive(files, request, location)


def _file(files: UserFiles, request: Request, location: Location) -> None:
    if request.command in ("GET", "HEAD"):
        contents.send_file(files, request, location)
    elif request.command == "PUT":
        contents.receive_file(files, request, location)
    elif request.command == "DELETE":
        contents.remove_file(files, request, location)
    else:
        raise no_method("GET, HEAD, PUT, DELETE")
