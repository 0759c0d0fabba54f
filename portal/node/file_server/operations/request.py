"""Parses and validates the request of an operation, before anything is changed."""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from urllib.parse import unquote

from portal.node.file_server import at
from portal.node.file_server.errors import Refused, Shared
from portal.node.file_server.location import Location, check_name, parse, shown
from portal.node.file_server.operations import archive_formats
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.protected import Protected, above
from portal.node.file_server.roots import Dentry, Roots, kind_words
from portal.node.file_server.tree.tree import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    from portal.node.file_server.operations.fetch_rules import FetchRules

COPY, MOVE, DELETE, MODE_KIND = "copy", "move", "delete", "mode"
UNPACK, FETCH = "unpack", "fetch"
KINDS = (COPY, MOVE, DELETE, MODE_KIND, UNPACK, FETCH)
REFUSE, RENAME, REPLACE, SKIP = "refuse", "rename", "replace", "skip"
CONFLICTS = (REFUSE, RENAME, REPLACE, SKIP)
MOST_ITEMS = 10_000
MODE = re.compile(r"0?[0-7]{3}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def read(data: Mapping[str, Any], rules: FetchRules) -> Operation:
    """Parse an operation from a JSON object; raises Refused."""
    kind = data.get("kind")
    if kind not in KINDS:
        raise Refused(422, "value", f"Write {', '.join(KINDS[:-1])} or {KINDS[-1]}.", "kind")
    conflict = data.get("on_conflict", REFUSE)
    if conflict not in CONFLICTS:
        raise Refused(422, "value", "Write refuse, rename, replace or skip.", "on_conflict")
    if kind == FETCH:
        return _fetch(data, conflict, rules)
    items = _items(data.get("items"))
    to = None
    if kind == UNPACK and not data.get("to"):
        to = _common_folder(items)
    elif kind in (COPY, MOVE, UNPACK):
        to = _location(data.get("to"), "to")
    mode = data.get("mode", "") if kind == MODE_KIND else ""
    if kind == MODE_KIND and not (isinstance(mode, str) and MODE.fullmatch(mode)):
        raise Refused(422, "value", "Write the permissions as three digits, such as 640.", "mode")
    return Operation(kind, items, to, conflict, mode)


def _fetch(data: Mapping[str, Any], conflict: str, rules: FetchRules) -> Operation:
    to = _location(data.get("to"), "to")
    url, digest, name = (data.get(key) or "" for key in ("url", "sha256", "name"))
    for key, value in (("url", url), ("sha256", digest), ("name", name)):
        if not isinstance(value, str):
            raise Refused(422, "value", "This is not text.", key)
    digest = digest.strip().lower()
    if digest and not _SHA256.fullmatch(digest):
        raise Refused(422, "value", "This is not a SHA-256 in hexadecimal digits.", "sha256")
    target = rules.source(url).target
    named = name or unquote(target.partition("?")[0].rsplit("/", 1)[-1])
    if not named:
        raise Refused(422, "name", "This URL has no name of a file at its end: write one.", "name")
    item = to.child(check_name(named.encode("utf-8", "surrogateescape"), "name"))
    return Operation(FETCH, (item,), to, conflict, url=url, sha256=digest)


def _items(items: Any) -> tuple[Location, ...]:
    if not isinstance(items, list) or not items:
        raise Refused(422, "value", "Name at least one file or folder.", "items")
    if len(items) > MOST_ITEMS:
        raise Refused(422, "value", f"Name up to {MOST_ITEMS:,} files and folders.", "items")
    return tuple(dict.fromkeys(_location(text, "items") for text in items))


def _common_folder(items: Iterable[Location]) -> Location:
    folders = {item.parent for item in items}
    if len(folders) > 1:
        words = "Name the folder to unpack into: these are in several folders."
        raise Refused(422, "value", words, "to")
    return folders.pop()


def _location(text: Any, field: str) -> Location:
    if not isinstance(text, str) or not text:
        raise Refused(422, "value", "Write the location of a file or folder.", field)
    try:
        return parse(text)
    except Refused as error:
        raise Refused(error.status, error.code, error.detail, field) from error


@dataclass(frozen=True)
class _Target:
    """The destination, and the items' names that it already contains."""

    folder: int
    within: Mapping[tuple[int, int], object]
    """The identities of the destination and its parents."""
    taken: Sequence[bytes]


def check(roots: Roots, operation: Operation, protected: Protected) -> None:
    """Raise Refused for an operation that is certain to fail.

    Shared folders are refused last: if nothing else is wrong, the portal ends the shares.
    """
    with contextlib.ExitStack() as stack:
        target = None
        if operation.to is not None:
            try:
                folder = stack.enter_context(roots.folder(operation.to, to_change=True))
                target = _Target(folder, above(folder), _taken(operation, folder))
            except Refused as error:
                field = error.field or "to"
                raise Refused(error.status, error.code, error.detail, field) from error
        shared: dict[bytes, Sequence[str]] = {}
        for item in () if operation.kind == FETCH else operation.items:
            shared.update(_check_item(roots, operation, item, protected, target))
        if target and target.taken and operation.on_conflict == REFUSE:
            raise _exists(target.taken)
        if shared:
            raise Shared(shared)


def _exists(taken: Sequence[bytes]) -> Refused:
    further = f" and {len(taken) - 5} more" if len(taken) > 5 else ""
    quoted = ", ".join(f"“{shown(name)}”" for name in taken[:5])
    return Refused(409, "exists", f"The destination has {quoted}{further} already.", "on_conflict")


def _name(operation: Operation, item: Location) -> bytes:
    """The item's name in the destination."""
    name = item.name or os.fsencode(item.root)
    return archive_formats.folder_name(name) if operation.kind == UNPACK else name


def _taken(operation: Operation, folder: int) -> list[bytes]:
    """Items' names that the destination contains; raises Refused if several items have one name."""
    names: dict[bytes, None] = {}
    for name in (_name(operation, item) for item in operation.items):
        if name in names and operation.on_conflict == REFUSE:
            words = f"Several of the items would be named “{shown(name)}”."
            raise Refused(409, "exists", words, "on_conflict")
        names[name] = None
    return [name for name in names if exists(folder, name)]


def exists(folder: int, name: bytes) -> bool:
    """Whether a name exists in a directory; a name that is too long does not."""
    try:
        at.status(folder, name)
    except OSError:
        return False
    return True


def check_not_root(operation: Operation, dentry: Dentry) -> None:
    """Raise Refused unless a storage area, or another user's folder, is only copied."""
    if dentry.name == b"." and operation.kind != COPY:
        raise Refused(409, "root", "This is a storage area of its own and remains.")


def _check_item(
    roots: Roots,
    operation: Operation,
    item: Location,
    protected: Protected,
    target: _Target | None,
) -> Mapping[bytes, Sequence[str]]:
    """Validate one item; raises Refused.

    Returns the shared storage folders that prevent it, and who has access to them.
    """
    name = shown(item.name) or item.root
    try:
        with roots.resolve(item, follow=False, to_change=True) as dentry:
            check_not_root(operation, dentry)
            try:
                status = dentry.status()
            except FileNotFoundError:
                if operation.kind == DELETE:
                    return {}
                raise
            if operation.kind == UNPACK:
                check_archive(dentry.name, status)
            if target and identity(status) in target.within:
                raise Refused(409, "into_itself", f"“{name}” cannot go into itself.", "to")
            return _shared(protected, _removed(operation, item, dentry, target))
    except Refused as error:
        if error.field in ("items", "to"):
            raise
        words = f"“{name}”: {error.detail}"
        raise Refused(error.status, error.code, words, "items") from error


def check_archive(name: bytes, status: os.stat_result) -> None:
    """Raise Refused if this is not an archive that can be unpacked here."""
    if not stat.S_ISREG(status.st_mode):
        raise Refused(409, "special", f"This is {kind_words(status.st_mode)}, not an archive.")
    archive_formats.check_available(archive_formats.format_of(name))


def _removed(
    operation: Operation, item: Location, dentry: Dentry, target: _Target | None
) -> Iterator[tuple[int, bytes]]:
    """Yield the files that the operation moves, deletes or replaces, as names in open folders."""
    if operation.kind == DELETE:
        yield dentry.folder, dentry.name
    if target is None or next(iter(target.within)) == identity(os.fstat(dentry.folder)):
        return  # it is already there
    name = _name(operation, item)
    is_taken = name in target.taken
    if operation.kind == MOVE and not (is_taken and operation.on_conflict == SKIP):
        yield dentry.folder, dentry.name
    if is_taken and operation.on_conflict == REPLACE:
        yield target.folder, name


def _shared(
    protected: Protected, removed: Iterable[tuple[int, bytes]]
) -> Mapping[bytes, Sequence[str]]:
    """The shared storage folders among these, and who has access to them; raises Refused."""
    recipients: dict[bytes, Sequence[str]] = {}
    for folder, name in removed:
        try:
            with contextlib.suppress(FileNotFoundError), protected.moving(folder, name):
                pass
        except Shared as refusal:
            recipients.update(refusal.recipients)
    return recipients
