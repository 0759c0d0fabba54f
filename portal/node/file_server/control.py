"""The portal's requests, /v1/<action>/<location>: read, carried out, answered with JSON."""

from __future__ import annotations

import os

from portal.node.file_server import entries
from portal.node.file_server.access.subjects import Share, read_access, read_subject
from portal.node.file_server.errors import Refused, no_such
from portal.node.file_server.location import Location, parse
from portal.node.file_server.operations.renaming import rename
from portal.node.file_server.quota import quota_of
from portal.node.file_server.roots import STORAGE
from portal.node.file_server.sharing import scan
from portal.node.file_server.tree.search import search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from portal.node.file_server.http import Request
    from portal.node.file_server.sharing.shares import Change
    from portal.node.file_server.user_files import UserFiles

    Handler = Callable[[UserFiles, Request, Location], None]


def answer(files: UserFiles, request: Request) -> None:
    """Answer one request; raises Refused or OSError."""
    _, version, action, *path = request.route.split("/", 3)
    handler = _HANDLERS.get((request.command, action)) if version == "v1" else None
    if handler is None:
        raise no_such()
    handler(files, request, parse(path[0]) if path and path[0] else Location(""))


def _ping(files: UserFiles, request: Request, _: Location) -> None:
    request.reply_json({"id": files.order.id, "pid": os.getpid()})


# Folders


def _list(files: UserFiles, request: Request, location: Location) -> None:
    query = request.query
    page = files.deadlines.call(
        location.root, lambda: entries.listing(files.roots, location, query)
    )
    request.reply_json(page)


def _entry(files: UserFiles, request: Request, location: Location) -> None:
    request.reply_json(
        files.deadlines.call(location.root, lambda: entries.described(files.roots, location))
    )


def _make_folder(files: UserFiles, request: Request, location: Location) -> None:
    folder = files.deadlines.call(location.root, lambda: entries.make_folder(files.roots, location))
    request.reply_json(folder, 201)


def _rename(files: UserFiles, request: Request, location: Location) -> None:
    request.reply_json(rename(files.roots, files.deadlines, location, request.json()))


def _quota(files: UserFiles, request: Request, location: Location) -> None:
    request.reply_json(quota_of(files.roots.get(location.root), files.order.quota))


# Whole trees


def _usage(files: UserFiles, request: Request, location: Location) -> None:
    """Answer GET /v1/usage/<location>; `again=true` ignores an earlier count."""
    files.reach(location)
    count = files.usage.get(location, again=request.query.get("again") == "true")
    request.reply_json(count.as_json())


def _search(files: UserFiles, request: Request, location: Location) -> None:
    """Answer GET /v1/search/<location>?text=…."""
    query = request.query
    # Under its own key: slow searches do not use up the calls that listings may make.
    key = f"search {location.root}"
    matches = files.deadlines.call(key, lambda: search(files.roots, location, query))
    request.reply_json(matches)


# Work in the background


def _list_uploads(files: UserFiles, request: Request, _: Location) -> None:
    request.reply_json({"uploads": files.uploads.unfinished()})


def _remove_upload(files: UserFiles, request: Request, location: Location) -> None:
    files.uploads.remove(location.root, request.connection)
    request.reply(204)


def _start_operation(files: UserFiles, request: Request, _: Location) -> None:
    request.reply_json(files.operations.start(request.json()).as_json(), 202)


def _show_operations(files: UserFiles, request: Request, location: Location) -> None:
    """Answer GET /v1/operations and /v1/operations/<id>."""
    if location.root:
        request.reply_json(files.operations.get(location.root).as_json())
    else:
        request.reply_json({"operations": files.operations.list()})


def _cancel_operation(files: UserFiles, request: Request, location: Location) -> None:
    request.reply_json(files.operations.cancel(location.root).as_json())


# Shares


def _list_shares(files: UserFiles, request: Request, location: Location) -> None:
    files.reach(location)
    request.reply_json(files.shares.listing(location))


def _compare_shares(files: UserFiles, request: Request, _: Location) -> None:
    """Answer POST /v1/shares: {listed: [{folder, kind, name}]}."""
    files.reach(Location(STORAGE))
    listed = request.json().get("listed")
    request.reply_json(scan.answer(files.roots, listed if isinstance(listed, list) else []))


def _share(files: UserFiles, request: Request, location: Location) -> None:
    """Answer PUT /v1/shares/<location>: {kind, name, access, must_exist}."""
    files.reach(location)
    data = request.json()
    subject = read_subject(data.get("kind"), data.get("name"))
    if data.get("must_exist") is True and subject.number is None:
        raise Refused(422, "no_account", f"There is no {subject.kind} of this name.", "name")
    access = read_access(data.get("access"))
    _reply_change(request, files.shares.give(location, Share(subject, access)))


def _take_back(files: UserFiles, request: Request, location: Location) -> None:
    """Answer DELETE /v1/shares/<location>?kind=&name=."""
    files.reach(location)
    subject = read_subject(request.query.get("kind"), request.query.get("name"))
    _reply_change(request, files.shares.take_back(location, subject))


def _reply_change(request: Request, change: Change) -> None:
    """Reply 200 when all files are changed, 202 while the change goes on."""
    data = change.as_json()
    request.reply_json(data, 202 if data["running"] else 200)


_HANDLERS: Mapping[tuple[str, str], Handler] = {
    ("GET", "ping"): _ping,
    ("GET", "list"): _list,
    ("GET", "entry"): _entry,
    ("POST", "folder"): _make_folder,
    ("POST", "rename"): _rename,
    ("GET", "quota"): _quota,
    ("GET", "usage"): _usage,
    ("GET", "search"): _search,
    ("GET", "uploads"): _list_uploads,
    ("DELETE", "uploads"): _remove_upload,
    ("POST", "operations"): _start_operation,
    ("GET", "operations"): _show_operations,
    ("DELETE", "operations"): _cancel_operation,
    ("GET", "shares"): _list_shares,
    ("POST", "shares"): _compare_shares,
    ("PUT", "shares"): _share,
    ("DELETE", "shares"): _take_back,
}
