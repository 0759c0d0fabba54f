"""What the portal asks about operations: requests to calls, results to JSON."""

from __future__ import annotations

from portal.node.file_server.operations.renaming import rename

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.server import FileServer


def start(server: FileServer, request: Request, _: Location) -> None:
    """Answer POST /v1/operations."""
    request.reply_json(server.operations.start(request.json()).as_json(), 202)


def show(server: FileServer, request: Request, location: Location) -> None:
    """Answer GET /v1/operations and /v1/operations/<id>."""
    if location.root:
        request.reply_json(server.operations.get(location.root).as_json())
    else:
        request.reply_json({"operations": server.operations.list()})


def cancel(server: FileServer, request: Request, location: Location) -> None:
    """Answer DELETE /v1/operations/<id>."""
    request.reply_json(server.operations.cancel(location.root).as_json())


def rename_one(server: FileServer, request: Request, location: Location) -> None:
    """Answer POST /v1/rename/<location>."""
    request.reply_json(rename(server.roots, server.deadlines, location, request.json()))
