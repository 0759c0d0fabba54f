"""What must hold before a change: preconditions, the header If, and lock tokens."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from portal.node.file_server import preconditions
from portal.node.file_server.dav import if_header
from portal.node.file_server.dav.properties import PREFIX
from portal.node.file_server.entries import etag
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, parse
from portal.node.file_server.locks import Lock, place_of
from portal.node.file_server.roots import Dentry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from portal.node.file_server.http import Request
    from portal.node.file_server.roots import Roots
    from portal.node.file_server.user_files import UserFiles


class Changed(NamedTuple):
    """A directory entry that a request changes."""

    dentry: Dentry
    whole: bool = False
    """Whether the name is created, deleted or given to something else."""


def check(files: UserFiles, request: Request, location: Location, *changed: Changed) -> None:
    """Raise Refused: 412 for a condition that does not hold, 423 for a lock without its token.

    To be called when nothing else prevents the change.
    """
    preconditions.check(files.roots, request, location)
    conditions = if_header.parse(request.headers.get("If", "").strip())
    host = request.headers.get("Host", "")
    if not conditions.hold(lambda address: _state(files, location, address, host)):
        words = "The locks or versions that “If” names are not there."
        raise Refused(412, "changed", words, "If")
    for each in changed:
        while lock := _preventing(files, each, conditions.tokens):
            if is_there(files, lock):
                raise locked(lock, "lock-token-submitted")
            files.locks.remove([lock])


def locked(lock: Lock, condition: str) -> Refused:
    """The refusal because of a lock (423)."""
    root = PREFIX + str(lock.location)
    return Refused(
        423,
        "locked",
        f"{root} is locked by one of your programs, for at most {lock.seconds} seconds.",
        condition=f"<D:{condition}><D:href>{escape(root)}</D:href></D:{condition}>",
    )


def forget(files: UserFiles, dentry: Dentry, *, inside_only: bool = False) -> None:
    """Remove the locks of what was deleted, moved away or replaced; they do not move with it.

    `inside_only`: not that of the name itself, which still exists.
    """
    if files.locks:
        place = place_of(dentry)
        files.locks.remove(files.locks.inside(place))
        if not inside_only:
            files.locks.remove(files.locks.at(place))


def check_parent(roots: Roots, location: Location) -> None:
    """Raise Refused (409, as RFC 4918 says) if the parent folder is missing."""
    try:
        with roots.folder(location.parent, to_show=True):
            pass
    except Refused as refused:
        if refused.status == 404:
            raise Refused(409, "no_folder", "The folder for it does not exist.") from None
        raise


def _preventing(files: UserFiles, changed: Changed, tokens: Collection[str]) -> Lock | None:
    if not files.locks:
        return None
    return files.locks.preventing(place_of(changed.dentry), tokens, whole=changed.whole)


def is_there(files: UserFiles, lock: Lock) -> bool:
    """Whether what was locked still exists: it may have been deleted or moved at another door."""
    try:
        with files.roots.resolve(lock.location, follow=False) as dentry:
            dentry.status()
    except Refused as error:
        return error.status != 404
    return True


def path_of(address: str, host: str) -> str | None:
    """The location, still encoded, of an absolute address or path; None if it is not WebDAV's."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.netloc.lower() not in ("", host.lower()) or not parts.path.startswith(PREFIX):
        return None
    return parts.path[len(PREFIX) :]


def _state(files: UserFiles, location: Location, address: str, host: str) -> tuple[set[str], str]:
    """The lock tokens and the entity tag of a resource that “If” names."""
    if address:
        path = path_of(address, host)
        if path is None:
            return set(), ""
        location = parse(path)
    status = preconditions.state_of(files.roots, location)
    try:
        with files.roots.resolve(location, follow=False) as dentry:
            locks = files.locks.covering(place_of(dentry))
    except Refused:
        locks = []
    return {lock.token for lock in locks}, etag(status) if status else ""
