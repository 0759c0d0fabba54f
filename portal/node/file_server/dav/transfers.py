"""DELETE, COPY and MOVE: what must not be moved, deleted or replaced is checked first."""

from __future__ import annotations

import contextlib
import stat

from portal.node.file_server.dav import guards, tree
from portal.node.file_server.dav.guards import Changed
from portal.node.file_server.dav.tree import Transfer
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, parse, shown
from portal.node.file_server.operations.protected import Protected, above
from portal.node.file_server.roots import Dentry, kind_words
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from portal.node.file_server.http import Request
    from portal.node.file_server.roots import Roots
    from portal.node.file_server.user_files import UserFiles


def delete(files: UserFiles, request: Request, location: Location) -> None:
    """Answer DELETE; raises Refused or OSError."""
    with files.roots.resolve(location, follow=False, to_change=True) as dentry:
        _check_depth(request, dentry.status())
        guards.check(files, request, location, Changed(dentry, whole=True))
        tree.remove(dentry, Protected(files.roots, files.deadlines))
        guards.forget(files, dentry)
    request.reply(204)


def copy(files: UserFiles, request: Request, location: Location) -> None:
    """Answer COPY; raises Refused or OSError."""
    depth = request.headers.get("Depth", "infinity").lower()
    if depth not in ("0", "infinity"):
        raise Refused(400, "value", "The depth of a copy is 0 or infinity.", "Depth")
    with _transfer(files, request, location) as transfer:
        guards.check(files, request, location, Changed(transfer.target, whole=True))
        tree.copy(transfer, alone=depth == "0")
        guards.forget(files, transfer.target, inside_only=True)
    request.reply(204 if transfer.replaced else 201)


def move(files: UserFiles, request: Request, location: Location) -> None:
    """Answer MOVE; raises Refused or OSError."""
    with _transfer(files, request, location) as transfer:
        _check_depth(request, transfer.status)
        changed = [Changed(each, whole=True) for each in (transfer.source, transfer.target)]
        guards.check(files, request, location, *changed)
        tree.move(transfer)
        guards.forget(files, transfer.source)
        guards.forget(files, transfer.target, inside_only=True)
    request.reply(204 if transfer.replaced else 201)


def _check_depth(request: Request, status: os.stat_result) -> None:
    """Refuse to delete or move a folder without what is in it."""
    if (
        stat.S_ISDIR(status.st_mode)
        and request.headers.get("Depth", "infinity").lower() != "infinity"
    ):
        raise Refused(400, "value", "This is done with all that a folder contains.", "Depth")


@contextlib.contextmanager
def _transfer(files: UserFiles, request: Request, location: Location) -> Iterator[Transfer]:
    """Resolve the source and the header Destination; raises Refused."""
    overwrite = request.headers.get("Overwrite", "T").upper()
    if overwrite not in ("T", "F"):
        raise Refused(400, "value", "Write T or F.", "Overwrite")
    roots = files.roots
    with roots.resolve(location, follow=False, to_change=True) as source:
        status = source.status()
        to = _destination(roots, request)
        guards.check_parent(roots, to)
        with roots.resolve(to, follow=False, to_change=True) as target:
            if to == location or identity(status) in above(target.folder):
                detail = f"“{shown(source.name)}” cannot be copied or moved into itself."
                raise Refused(403, "into_itself", detail, "Destination")
            replaced = _replaced(target)
            if replaced and overwrite == "F":
                raise tree.taken(target)
            protected = Protected(roots, files.deadlines)
            yield Transfer(
                source, target, status, replaced, overwrite == "T", protected, files.records
            )


def _destination(roots: Roots, request: Request) -> Location:
    text = request.headers.get("Destination", "")
    path = guards.path_of(text, request.headers.get("Host", ""))
    if not text or "#" in text:
        raise Refused(400, "value", "Write the address of the new file.", "Destination")
    if path is None:
        words = "Nothing can be copied or moved from here to this address."
        raise Refused(502, "other_server", words, "Destination")
    location = parse(path)
    if location == roots.area(location):
        raise Refused(403, "root", "A storage area cannot be replaced.", "Destination")
    return location


def _replaced(target: Dentry) -> os.stat_result | None:
    """The status of the destination; raises Refused if it is nothing that can be replaced."""
    try:
        status = target.status()
    except FileNotFoundError:
        return None
    if stat.S_IFMT(status.st_mode) not in (stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK):
        detail = f"“{shown(target.name)}” is {kind_words(status.st_mode)}, which is not replaced."
        raise Refused(409, "special", detail, "Destination")
    return status
