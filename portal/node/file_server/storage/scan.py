"""Looks through all storage folders: who has access, and which known access is there no more."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from urllib.parse import quote, unquote_to_bytes

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location
from portal.node.file_server.roots import STORAGE, Roots
from portal.node.file_server.storage.schemes import scheme_of
from portal.node.file_server.storage.subjects import GROUP, USER, Share, Subject
from portal.node.file_server.storage.walk import Found
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 2.0
"""Then it ends; folders that were not looked at are neither listed nor missing."""
MOST = 10_000
"""Shares of one answer, and of one question."""


@dataclass
class Scan:
    """What was seen."""

    shares: dict[bytes, list[Share]] = field(default_factory=dict)
    """By the folder's name."""
    unclear: set[bytes] = field(default_factory=set)
    """Folders of which it is not known."""
    is_complete: bool = False


def answer(roots: Roots, data: Any) -> dict[str, Any]:
    """Compare with what the portal has listed, as places in its list; raises Refused.

    A subject of which this host knows no account is there as long as its folder.
    """
    listed = [_listed(each) for each in data if isinstance(each, dict)] if data else []
    with roots.place(Location(STORAGE)) as place:
        seen = _scan(roots, place.folder)
    missing, ended = [], []
    for number, (name, subject) in enumerate(listed[:MOST]):
        if name not in seen.shares:
            if seen.is_complete and name not in seen.unclear:
                missing.append(number)
        elif subject.number is not None and not _has(seen.shares[name], subject):
            ended.append(number)
    shares = [
        {"folder": quote(name, safe=""), **share.as_json()}
        for name, of_one in seen.shares.items()
        for share in of_one
    ]
    return {"shares": shares[:MOST], "missing": missing, "ended": ended}


def _listed(each: dict[str, Any]) -> tuple[bytes, Subject]:
    name = unquote_to_bytes(str(each.get("folder") or ""))
    return name, Subject(GROUP if each.get("kind") == GROUP else USER, str(each.get("name")))


def _has(shares: list[Share], subject: Subject) -> bool:
    return any(
        (share.subject.kind, share.subject.number) == (subject.kind, subject.number)
        for share in shares
    )


def _scan(roots: Roots, storage: int) -> Scan:
    """Raises OSError if the storage itself cannot be read."""
    seen, deadline = Scan(), time.monotonic() + SECONDS
    listed = at.reopen(storage, at.READ_FOLDER)
    try:
        for name in at.names(listed):
            if time.monotonic() > deadline:
                return seen
            try:
                _look(roots, listed, name, seen)
            except FileNotFoundError:  # it has gone meanwhile
                continue
            except (OSError, ValueError, Refused):
                seen.unclear.add(name)
    finally:
        os.close(listed)
    seen.is_complete = True
    return seen


def _look(roots: Roots, storage: int, name: bytes, seen: Scan) -> None:
    with at.opened(storage, name, at.PATH) as opened:
        found = Found(opened, (), os.fstat(opened))
        if not found.is_folder or found.status.st_uid != os.geteuid():
            return
        if roots.holds.is_changing(identity(found.status)):
            seen.unclear.add(name)
        else:
            seen.shares[name] = scheme_of(found).shares(found)
