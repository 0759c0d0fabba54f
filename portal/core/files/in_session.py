"""Paths of files in a session that has mounted their folder."""

from __future__ import annotations

from urllib.parse import quote, unquote

from portal.core.launch.mounts import mount_name
from portal.core.session.session import Home, Session
from portal.node.common.folder_name import HOME


def path_in_session(session: Session, location: str, storage: str) -> str:
    """The path below the session's home, percent-encoded; "" if the session does not have it.

    `storage`: the path of the owner's storage folders (storage_of); if it is outside of the home, a
    session in the owner's home directory does not have it. Apps name files in UTF-8, so names in
    other encodings cannot be opened.
    """
    if not _is_text(location):
        return ""
    names = location.split("/")
    if session.home is Home.PERSISTENT:
        return _in_own_home(names, storage)
    for mount in session.mounts:
        start = _location_of(mount.folder, mount.owner)
        if names[: len(start)] == start:
            return "/".join([mount_name(mount, session.mounts), *names[len(start) :]])
    return ""


def _in_own_home(names: list[str], storage: str) -> str:
    if storage.startswith("/") or names[0] not in ("home", "storage"):
        return ""
    start = [quote(storage)] if names[0] == "storage" else []
    return "/".join([*start, *names[1:]])


def _location_of(folder: str, owner: str) -> list[str]:
    if owner:
        return ["shared", *folder.split("/")]
    return ["home"] if folder == HOME else ["storage", folder]


def _is_text(location: str) -> bool:
    try:
        unquote(location, errors="strict")
    except UnicodeDecodeError:
        return False
    return True
