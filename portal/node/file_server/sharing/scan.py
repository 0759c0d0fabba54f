"""Scans all storage folders for shares, and compares them with the portal's list."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from urllib.parse import quote, unquote_to_bytes

from portal.node.file_server import at
from portal.node.file_server.access.schemes import scheme_of
from portal.node.file_server.access.subjects import GROUP, USER, Share, Subject
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location
from portal.node.file_server.roots import STORAGE, Roots
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 2.0
"""Deadline; folders that were not scanned are neither listed nor missing."""
MOST = 10_000
"""Shares of one reply, and of one request."""


@dataclass
class Scan:
    """The result of a scan."""

    shares: dict[bytes, list[Share]] = field(default_factory=dict)
    """By the folder's name."""
    unclear: set[bytes] = field(default_factory=set)
    """Folders whose shares are unknown."""
    is_complete: bool = False


def answer(roots: Roots, data: Any) -> dict[str, Any]:
    """Compare with the portal's list, and reply with indices in it; raises Refused.

    A subject without an account on this host counts as present while its folder exists.
    """
    listed = [_listed(item) for item in data if isinstance(item, dict)] if data else []
    with roots.resolve(Location(STORAGE)) as dentry:
        scan = _scan(roots, dentry.folder)
    missing, ended = [], []
    for number, (name, subject) in enumerate(listed[:MOST]):
        if name not in scan.shares:
            if scan.is_complete and name not in scan.unclear:
                missing.append(number)
        elif subject.number is not None and not _has(scan.shares[name], subject):
            ended.append(number)
    shares = [
        {"folder": quote(name, safe=""), **share.as_json()}
        for name, folder_shares in scan.shares.items()
        for share in folder_shares
    ]
    return {"shares": shares[:MOST], "missing": missing, "ended": ended}


def _listed(item: dict[str, Any]) -> tuple[bytes, Subject]:
    name = unquote_to_bytes(str(item.get("folder") or ""))
    return name, Subject(GROUP if item.get("kind") == GROUP else USER, str(item.get("name")))


def _has(shares: list[Share], subject: Subject) -> bool:
    return any(
        (share.subject.kind, share.subject.number) == (subject.kind, subject.number)
        for share in shares
    )


def _scan(roots: Roots, storage: int) -> Scan:
    """Scan the storage area; raises OSError if it cannot be read."""
    scan, deadline = Scan(), time.monotonic() + SECONDS
    folder = at.reopen(storage, at.READ_FOLDER)
    try:
        for name in at.names(folder):
            if time.monotonic() > deadline:
                return scan
            try:
                _scan_folder(roots, folder, name, scan)
            except FileNotFoundError:  # deleted meanwhile
                continue
            except (OSError, ValueError, Refused):
                scan.unclear.add(name)
    finally:
        os.close(folder)
    scan.is_complete = True
    return scan


def _scan_folder(roots: Roots, storage: int, name: bytes, scan: Scan) -> None:
    with at.opened(storage, name, at.PATH) as opened:
        file = OpenFile(opened, (), os.fstat(opened))
        if not file.is_folder or file.status.st_uid != os.geteuid():
            return
        if roots.holds.is_changing(identity(file.status)):
            scan.unclear.add(name)
        else:
            scan.shares[name] = scheme_of(file).shares(file)
