"""Paths of files in a session that has mounted their folder, and locations of mounted folders."""

from __future__ import annotations

from urllib.parse import quote, unquote

from portal.core.files.location import SAFE
from portal.core.launch.mounts import Mount, mount_name
from portal.core.session.session import Home, Session
from portal.node.common.folder_name import HOME


def path_in_session(session: Session, location: str, storage: str) -> str:
    """The path below the session's home, percent-encoded; "" if the session does not have it.

    `location` is canonical. `storage`: the path of the owner's storage folders (storage_of); if it
    is outside of the home, a session in the owner's home directory does not have it. Apps name
    files in UTF-8, so names in other encodings cannot be opened.
    """
    if not _is_text(location):
        return ""
    names = location.split("/")
    if session.home is Home.PERSISTENT:
        return _in_own_home(names, storage)
    for mount in session.mounts:
        start = location_of(mount).split("/")
        if names[: len(start)] == start:
            name = quote(mount_name(mount, session.mounts), safe=SAFE)
            return "/".join([name, *names[len(start) :]])
    return ""


def _in_own_home(names: list[str], storage: str) -> str:
    if storage.startswith("/") or names[0] not in ("home", "storage"):
        return ""
    start = [quote(storage)] if names[0] == "storage" else []
    return "/".join([*start, *names[1:]])


def location_of(mount: Mount) -> str:
    """The canonical location of a mounted folder."""
    if mount.owner:
        return f"shared/{mount.owner}/{quote(mount.name, safe=SAFE)}"
    return HOME if mount.folder == HOME else f"storage/{quote(mount.folder, safe=SAFE)}"


def _is_text(location: str) -> bool:
    try:
        unquote(location, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
