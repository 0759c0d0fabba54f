"""LOCK and UNLOCK (RFC 4918, 9.10 and 9.11), which Finder and Windows need before they write."""

from __future__ import annotations

import os
import re

from portal.node.file_server import at
from portal.node.file_server.dav import documents, guards, properties
from portal.node.file_server.dav.documents import DAV
from portal.node.file_server.dav.guards import Changed
from portal.node.file_server.dav.if_header import parse
from portal.node.file_server.errors import Refused
from portal.node.file_server.locks import LEAST_SECONDS, MOST_SECONDS, Lock, place_of
from portal.node.file_server.operations.request import exists
from portal.node.file_server.roots import Dentry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.user_files import UserFiles

_MOST_BYTES = 8 * 1024
"""Of a request, whose owner is kept with the lock."""
_SECONDS = re.compile(r"second-([0-9]{1,20})", re.IGNORECASE)


def lock(files: UserFiles, request: Request, location: Location) -> None:
    """Answer LOCK: a new lock, also of a new empty file, or more time for one; raises Refused."""
    document = documents.read(request, _MOST_BYTES)
    if not document:
        _refresh(files, request, location)
        return
    guards.check_parent(files.roots, location)
    with files.roots.resolve(location, follow=False, to_change=True) as dentry:
        new = _requested(request, document, location, dentry)
        is_created = not exists(dentry.folder, dentry.name)
        changed = [Changed(dentry, whole=True)] if is_created else []
        guards.check(files, request, location, *changed)
        _add(files, new, _seconds(request))
        if is_created:
            try:
                os.close(at.create(dentry.folder, dentry.name, 0o666))
            except BaseException:
                files.locks.remove([new])
                raise
    _reply(request, new, 201 if is_created else 200, {"Lock-Token": f"<{new.token}>"})


def _add(files: UserFiles, new: Lock, seconds: int) -> None:
    while other := files.locks.add(new, seconds):
        if guards.is_there(files, other):
            raise guards.locked(other, "no-conflicting-lock")
        files.locks.remove([other])


def _requested(request: Request, document: bytes, location: Location, dentry: Dentry) -> Lock:
    depth = request.headers.get("Depth", "infinity").lower()
    if depth not in ("0", "infinity"):
        raise Refused(400, "value", "The depth of a lock is 0 or infinity.", "Depth")
    info = documents.parse(document, DAV + "lockinfo")
    scopes = [scope.tag for scope in info.iterfind(f"{DAV}lockscope/*")]
    kinds = [kind.tag for kind in info.iterfind(f"{DAV}locktype/*")]
    if kinds != [DAV + "write"] or scopes not in ([DAV + "exclusive"], [DAV + "shared"]):
        documents.refuse("There are exclusive and shared write locks.")
    owner = info.find(DAV + "owner")
    return Lock(
        location=location,
        place=place_of(dentry),
        is_exclusive=scopes == [DAV + "exclusive"],
        is_deep=depth == "infinity",
        owner="" if owner is None else documents.text_of(owner),
    )


def _seconds(request: Request) -> int:
    """The time of a lock, within bounds; the longest if the client names none, or infinity."""
    match = _SECONDS.match(request.headers.get("Timeout", "").strip())
    return min(max(int(match[1]), LEAST_SECONDS), MOST_SECONDS) if match else MOST_SECONDS


def _refresh(files: UserFiles, request: Request, location: Location) -> None:
    """Give a lock that covers the location, and that “If” names, its time again."""
    tokens = parse(request.headers.get("If", "").strip()).tokens
    if len(tokens) != 1:
        raise Refused(400, "value", "Name the lock by its token, or describe a new one.", "If")
    guards.check(files, request, location)
    with files.roots.resolve(location, follow=False) as dentry:
        covering = files.locks.covering(place_of(dentry))
    held = [lock for lock in covering if lock.token in tokens]
    if not held:
        raise Refused(412, "changed", "There is no such lock.", "If")
    files.locks.refresh(held[0], _seconds(request))
    _reply(request, held[0], 200, {})


def _reply(request: Request, held: Lock, status: int, headers: dict[str, str]) -> None:
    discovery = documents.element(DAV + "lockdiscovery", properties.active(held))
    request.reply_xml(f'<D:prop xmlns:D="DAV:">{discovery}</D:prop>\n', status, headers)


def unlock(files: UserFiles, request: Request, location: Location) -> None:
    """Answer UNLOCK; raises Refused."""
    token = request.headers.get("Lock-Token", "").strip()
    if not re.fullmatch("<[^<>]+>", token):
        raise Refused(400, "value", "Write the lock's token in angle brackets.", "Lock-Token")
    with files.roots.resolve(location, follow=False) as dentry:
        covering = files.locks.covering(place_of(dentry))
    held = [lock for lock in covering if lock.token == token[1:-1]]
    if not held:
        condition = "<D:lock-token-matches-request-uri/>"
        detail = "There is no such lock here."
        raise Refused(409, "no_lock", detail, "Lock-Token", condition=condition)
    files.locks.remove(held)
    request.reply(204)
