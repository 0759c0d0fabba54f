"""Requests of the portal about shares, to calls and answers."""

from __future__ import annotations

from portal.node.file_server.storage import scan
from portal.node.file_server.storage.subjects import Share, read_access, read_subject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.roots import Roots
    from portal.node.file_server.storage.shares import Change, Shares


def share(shares: Shares, request: Request, location: Location) -> None:
    """Answer PUT: {kind, name, access}."""
    data = request.json()
    subject = read_subject(data.get("kind"), data.get("name"))
    _answer(request, shares.give(location, Share(subject, read_access(data.get("access")))))


def compare(roots: Roots, request: Request) -> None:
    """Answer POST without a folder: {listed: [{folder, kind, name}]}."""
    listed = request.json().get("listed")
    request.reply_json(scan.answer(roots, listed if isinstance(listed, list) else []))


def take_back(shares: Shares, request: Request, location: Location) -> None:
    """Answer DELETE with ?kind=&name=."""
    subject = read_subject(request.query.get("kind"), request.query.get("name"))
    _answer(request, shares.take_back(location, subject))


def _answer(request: Request, change: Change) -> None:
    """200 when all files are changed, 202 while it goes on."""
    data = change.as_json()
    request.reply_json(data, 202 if data["running"] else 200)
