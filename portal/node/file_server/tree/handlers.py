"""What the portal asks about whole trees."""

from __future__ import annotations

from portal.node.file_server.tree.search import search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.server import FileServer


def show_usage(server: FileServer, request: Request, location: Location) -> None:
    """Answer GET /v1/usage/<location>; `again=true` counts anew."""
    server.reach(location)
    count = server.usage.get(location, again=request.query.get("again") == "true")
    request.reply_json(count.as_json())


def find(server: FileServer, request: Request, location: Location) -> None:
    """Answer GET /v1/search/<location>?text=…."""
    query = request.query
    # Long ones do not take the places of lists.
    area = f"search {location.root}"
    found = server.deadlines.call(area, lambda: search(server.roots, location, query))
    request.reply_json(found)
