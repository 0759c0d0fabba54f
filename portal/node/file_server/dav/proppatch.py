"""PROPPATCH: all changes of properties, or none."""

from __future__ import annotations

import errno
import os
import stat
import threading
from dataclasses import dataclass

from portal.node.file_server import at
from portal.node.file_server.dav import documents, guards, properties
from portal.node.file_server.dav.documents import DAV
from portal.node.file_server.dav.guards import Changed
from portal.node.file_server.dav.properties import PROTECTED, TIMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from xml.etree.ElementTree import Element

    from portal.node.file_server.http import Request
    from portal.node.file_server.location import Location
    from portal.node.file_server.user_files import UserFiles

    Refusals = dict[str, tuple[str, str]]

_one_after_another = [threading.Lock() for _ in range(64)]
"""By inode: the properties are read, changed and written as a whole."""
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_TOO_MUCH = (errno.ENOSPC, errno.EDQUOT, errno.E2BIG, errno.ERANGE)
OK, FORBIDDEN, CONFLICT = "200 OK", "403 Forbidden", "409 Conflict"
DEPENDENT, FULL = "424 Failed Dependency", "507 Insufficient Storage"
_PROTECTED = "<D:cannot-modify-protected-property/>"


@dataclass(frozen=True)
class Change:
    """One property that is set, or removed (None)."""

    name: str
    value: Element | None


def answer(files: UserFiles, request: Request, location: Location) -> None:
    """Answer PROPPATCH; raises Refused."""
    changes = list(_changes(documents.parse(documents.read(request), DAV + "propertyupdate")))
    if not changes:
        documents.refuse("This document sets and removes no property.")
    with files.roots.resolve(location, to_change=True) as dentry:
        is_folder = stat.S_ISDIR(dentry.status().st_mode)
        guards.check(files, request, location, Changed(dentry))
        with (
            at.opened(dentry.folder, dentry.name, at.PATH) as opened,
            _one_after_another[os.fstat(opened).st_ino % len(_one_after_another)],
        ):
            refusals = _carry_out(opened, changes)
    statuses: dict[tuple[str, str], str] = {}
    for name in dict.fromkeys(change.name for change in changes):
        status = refusals.get(name, (DEPENDENT if refusals else OK, ""))
        statuses[status] = statuses.get(status, "") + documents.element(name)
    parts = [(status, names, condition) for (status, condition), names in statuses.items()]
    href = properties.href(location, is_folder=is_folder)
    request.reply_xml(documents.multistatus(documents.response(href, parts)), 207)


def _changes(update: Element) -> Iterator[Change]:
    """The changes in the order in which they are made."""
    for action in update:
        if action.tag not in (DAV + "set", DAV + "remove"):
            continue
        for prop in action.iterfind(DAV + "prop"):
            # The language belongs to the value (RFC 4918, 4.3).
            above = [
                each.attrib[_LANGUAGE]
                for each in (prop, action, update)
                if _LANGUAGE in each.attrib
            ]
            for each in prop:
                if above:
                    each.attrib.setdefault(_LANGUAGE, above[0])
                yield Change(each.tag, each if action.tag == DAV + "set" else None)


def _carry_out(opened: int, changes: Sequence[Change]) -> Refusals:
    """Make all changes of an open file; returns what prevented them, by property."""
    refusals: Refusals = {}
    modified: float | None = None
    for change in changes:
        if change.name in TIMES and change.value is not None:
            modified = properties.parse_modified(change.name, change.value.text or "")
            if modified is None:
                refusals[change.name] = CONFLICT, ""
        elif change.name in PROTECTED or change.name in TIMES:
            refusals[change.name] = FORBIDDEN, _PROTECTED
    if refusals:
        return refusals
    before = os.fstat(opened)
    times = [change.name for change in changes if change.name in TIMES]
    others = [change for change in changes if change.name not in TIMES]
    try:
        if modified is not None:
            at.set_times(opened, before.st_atime_ns, int(modified * 1e9))
    except OSError as error:
        return dict.fromkeys(times, _refusal(error))
    try:
        _change_dead(opened, others)
    except OSError as error:
        if modified is not None:
            at.set_times(opened, before.st_atime_ns, before.st_mtime_ns)
        return dict.fromkeys((change.name for change in others), _refusal(error))
    return {}


def _change_dead(opened: int, changes: Sequence[Change]) -> None:
    """Change dead properties; raises OSError."""
    if not changes:
        return
    dead = properties.read_dead(opened)
    before = dict(dead)
    for change in changes:
        if change.value is None:
            dead.pop(change.name, None)
        else:
            dead[change.name] = change.value
    if dead != before:
        properties.write_dead(opened, dead)


def _refusal(error: OSError) -> tuple[str, str]:
    return (FULL if error.errno in _TOO_MUCH else FORBIDDEN), ""
