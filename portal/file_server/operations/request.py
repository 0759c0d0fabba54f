"""Reads and checks what the portal asks for, before anything is changed."""

from __future__ import annotations

import os
import stat

from portal.file_server.errors import Refused
from portal.file_server.folders import MODE
from portal.file_server.location import Location, parse, shown
from portal.file_server.operations.operation import Operation
from portal.file_server.operations.protected import Protected, above
from portal.file_server.roots import Place, Roots
from portal.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

COPY, MOVE, DELETE, MODE_KIND = "copy", "move", "delete", "mode"
KINDS = (COPY, MOVE, DELETE, MODE_KIND)
REFUSE, RENAME, REPLACE, SKIP = "refuse", "rename", "replace", "skip"
CONFLICTS = (REFUSE, RENAME, REPLACE, SKIP)
MOST_ITEMS = 10_000


def read(data: Mapping[str, Any]) -> Operation:
    """The operation in a JSON object; raises Refused."""
    kind = data.get("kind")
    if kind not in KINDS:
        raise Refused(422, "value", "Write copy, move, delete or mode.", "kind")
    to = None
    if kind in (COPY, MOVE):
        to = _location(data.get("to"), "to")
    conflict = data.get("on_conflict", REFUSE)
    if conflict not in CONFLICTS:
        raise Refused(422, "value", "Write refuse, rename, replace or skip.", "on_conflict")
    mode = data.get("mode", "") if kind == MODE_KIND else ""
    if kind == MODE_KIND and not (isinstance(mode, str) and MODE.fullmatch(mode)):
        raise Refused(422, "value", "Write the permissions as three digits, such as 640.", "mode")
    return Operation(kind, _items(data.get("items")), to, conflict, mode)


def _items(found: Any) -> tuple[Location, ...]:
    if not isinstance(found, list) or not found:
        raise Refused(422, "value", "Name at least one file or folder.", "items")
    if len(found) > MOST_ITEMS:
        raise Refused(422, "value", f"Name up to {MOST_ITEMS:,} files and folders.", "items")
    return tuple(dict.fromkeys(_location(text, "items") for text in found))


def _location(text: Any, field: str) -> Location:
    if not isinstance(text, str) or not text:
        raise Refused(422, "value", "Write the location of a file or folder.", field)
    try:
        return parse(text)
    except Refused as error:
        raise Refused(error.status, error.code, error.detail, field) from error


def check(roots: Roots, operation: Operation, protected: Protected) -> None:
    """Refuse what can be seen to be impossible; raises Refused."""
    if operation.to is None:
        for item in operation.items:
            _check_item(roots, operation, item, protected, {})
        return
    try:
        with roots.folder(operation.to) as folder:
            within = above(folder)
            taken = _taken(operation, folder) if operation.on_conflict == REFUSE else []
    except Refused as error:
        raise Refused(error.status, error.code, error.detail, "to") from error
    for item in operation.items:
        _check_item(roots, operation, item, protected, within)
    if taken:
        more = f" and {len(taken) - 5} more" if len(taken) > 5 else ""
        quoted = ", ".join(f"“{shown(name)}”" for name in taken[:5])
        raise Refused(409, "exists", f"The destination has {quoted}{more} already.", "on_conflict")


def _taken(operation: Operation, folder: int) -> list[bytes]:
    """Names that the destination has already; raises Refused if several items have the same."""
    found: dict[bytes, None] = {}
    for item in operation.items:
        name = item.name or os.fsencode(item.root)
        if name in found:
            raise Refused(
                409, "exists", f"Several of the items are named “{shown(name)}”.", "on_conflict"
            )
        found[name] = None
    return [name for name in found if exists(folder, name)]


def exists(folder: int, name: bytes) -> bool:
    """Whether a directory has something of this name; a name that is too long does not exist."""
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def check_not_root(operation: Operation, place: Place) -> None:
    """Storage areas, and others' folders, can only be copied; raises Refused."""
    if place.name == b"." and operation.kind != COPY:
        raise Refused(409, "root", "This is a storage area of its own and remains.")


def _check_item(
    roots: Roots,
    operation: Operation,
    item: Location,
    protected: Protected,
    within: Mapping[tuple[int, int], object],
) -> None:
    name = shown(item.name) or item.root
    try:
        with roots.place(item, follow=False) as place:
            check_not_root(operation, place)
            try:
                status = place.status()
            except FileNotFoundError:
                if operation.kind == DELETE:
                    return
                raise
    except Refused as error:
        words = f"“{name}”: {error.detail}"
        raise Refused(error.status, error.code, words, "items") from error
    if not stat.S_ISDIR(status.st_mode):
        return
    if identity(status) in within:
        raise Refused(409, "into_itself", f"“{name}” cannot go into itself.", "to")
    if operation.kind in (MOVE, DELETE):
        protected.check(identity(status), name)
