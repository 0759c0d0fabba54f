"""Entries of folders as JSON: sorted, searched and paged."""

from __future__ import annotations

import functools
import grp
import os
import pwd
import stat

from portal.node.common.natural_sort import natural_key
from portal.node.file_server import at, in_place
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import PART_PREFIX, Location, shown
from portal.node.file_server.roots import Roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MOST = 1000
"""Entries of one reply."""
_KINDS = (
    (stat.S_ISREG, "file"),
    (stat.S_ISDIR, "folder"),
    (stat.S_ISLNK, "link"),
    (stat.S_ISFIFO, "fifo"),
    (stat.S_ISSOCK, "socket"),
)
ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda entry: natural_key(entry["name"]),
    "size": lambda entry: entry["size"],
    "modified": lambda entry: entry["modified"],
}


def etag(status: os.stat_result) -> str:
    """The entity tag of a file's state."""
    return f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'


def listing(roots: Roots, location: Location, query: Mapping[str, str]) -> dict[str, Any]:
    """A page of a folder's entries; `query`: sort, order, search, hidden, offset, limit."""
    sort, reverse = query.get("sort", "name"), query.get("order") == "desc"
    if sort not in ORDERS:
        raise Refused(422, "value", "Sort by name, size or modified.", "sort")
    offset, limit = _number(query, "offset", 0), min(_number(query, "limit", 200), MOST)
    search = query.get("search", "").casefold()
    with roots.folder(location, to_show=True) as folder:
        names = [name for name in at.names(folder) if _is_listed(name, query)]
        if search:
            names = [name for name in names if search in shown(name).casefold()]
        if sort == "name":  # stat(2) only for one page of a large folder
            names.sort(key=lambda name: natural_key(shown(name)), reverse=reverse)
            folders_first = sorted(names, key=lambda name: not _is_folder(folder, name))
            page = [entry_at(location, folder, n) for n in folders_first[offset : offset + limit]]
        else:
            entries = [e for n in names if (e := entry_at(location, folder, n))]
            entries.sort(key=lambda entry: natural_key(entry["name"]))
            entries.sort(key=ORDERS[sort], reverse=reverse)
            entries.sort(key=lambda entry: not entry["is_folder"])
            page = list(entries[offset : offset + limit])
        writable = at.may(folder, os.W_OK | os.X_OK)
        description = _describe(location, os.fstat(folder))
    return {
        "folder": description,
        "entries": [entry for entry in page if entry],
        "total": len(names),
        "offset": offset,
        "writable": writable,
    }


def described(roots: Roots, location: Location) -> dict[str, Any]:
    """One entry, and how it would be saved (in_place.describe); raises Refused."""
    data = entry(roots, location)
    saving = None
    if data["kind"] in ("file", "link") and not data["is_folder"]:
        try:
            with roots.resolve(location, to_change=True) as dentry:
                saving = in_place.describe(dentry)
        except Refused as refused:  # a link that is not followed
            saving = {"how": in_place.REFUSED, "detail": refused.detail}
    return data | {"saving": saving}


def entry(roots: Roots, location: Location) -> dict[str, Any]:
    """One entry; raises Refused."""
    with roots.resolve(location, follow=False) as dentry:
        data = entry_at(location.parent if location.names else location, dentry.folder, dentry.name)
        if data is None:
            raise FileNotFoundError(2, "gone")
        return data | {"path": str(location), "name": shown(location.name) or location.root}


def make_folder(roots: Roots, location: Location) -> dict[str, Any]:
    """Create a folder; returns its entry. Raises Refused."""
    with roots.resolve(location, follow=False, to_change=True) as dentry:
        at.make_folder(dentry.folder, dentry.name)
    return entry(roots, location)


def entry_at(parent: Location, folder: int, name: bytes) -> dict[str, Any] | None:
    """The entry of a name in an open directory; None if it was deleted meanwhile."""
    try:
        status = at.status(folder, name)
    except OSError:
        return None
    data = _describe(parent.child(name), status)
    if stat.S_ISLNK(status.st_mode):
        data |= _link(folder, name)
    return data


def _describe(location: Location, status: os.stat_result) -> dict[str, Any]:
    mode = status.st_mode
    kind = next((kind for test, kind in _KINDS if test(mode)), "device")
    return {
        "name": shown(location.name) or location.root,
        "path": str(location),
        "kind": kind,
        "is_folder": kind == "folder",
        "size": status.st_size if kind == "file" else 0,
        "modified": status.st_mtime_ns / 1e9,
        "mode": f"{stat.S_IMODE(mode):04o}",
        "owner": _user(status.st_uid),
        "group": _group(status.st_gid),
        "etag": etag(status),
        "link": None,
    }


def _link(folder: int, name: bytes) -> dict[str, Any]:
    """The target of a link, and whether that is an accessible folder."""
    try:
        target = at.read_link(folder, name)
    except OSError:
        target = b""
    return {"link": shown(target), "is_folder": _is_folder(folder, name)}


def _is_folder(folder: int, name: bytes) -> bool:
    try:
        return stat.S_ISDIR(at.leads_to(folder, name).st_mode)
    except OSError:
        return False


def _is_listed(name: bytes, query: Mapping[str, str]) -> bool:
    if name.startswith(PART_PREFIX):
        return False
    return query.get("hidden") == "true" or not name.startswith(b".")


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise Refused(422, "value", "This is not a number.", name)
    return int(text)


@functools.lru_cache(4096)
def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


@functools.lru_cache(4096)
def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
