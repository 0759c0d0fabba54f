"""Folders that other users share: `shared/<owner>/<folder>` leads to a storage folder of theirs.

The answers do not reveal which users exist: folders that the user may not enter are not found.
"""

from __future__ import annotations

import os
import pwd

from portal.node.file_server import at
from portal.node.file_server.errors import no_such

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

SHARED = "shared"


def open_shared(names: Sequence[bytes], storage: str) -> tuple[str, int]:
    """The path and an O_PATH descriptor of another user's storage folder; raises Refused (404).

    The owner can replace anything below the owner's directory, so no link is followed there, and
    the folder must belong to the owner. `storage`: the site's setting.
    """
    if len(names) < 2 or not storage:
        raise no_such()
    account = _account(os.fsdecode(names[0]))
    start, steps = _way(account, storage)
    folder = os.fsdecode(names[1])
    try:
        descriptor = _descend(start, [*steps, folder])
    except (OSError, ValueError):
        raise no_such() from None
    # A user who may only traverse it has access to another folder in it.
    if os.fstat(descriptor).st_uid != account.pw_uid or not _may_read(descriptor):
        os.close(descriptor)
        raise no_such()
    return "/".join([start.rstrip("/"), *steps, folder]), descriptor


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except (KeyError, ValueError, UnicodeError):
        raise no_such() from None


def _way(account: pwd.struct_passwd, storage: str) -> tuple[str, list[str]]:
    """The directory that administrators made for the owner, and the path below it."""
    if "{user}" not in storage and not storage.startswith("/"):
        return account.pw_dir, _steps(storage)
    prefix, _, tail = storage.partition("{user}")
    if not prefix.startswith("/"):
        return account.pw_dir, _steps(storage.replace("{user}", account.pw_name))
    suffix, _, below = tail.partition("/")
    return prefix + account.pw_name + suffix, _steps(below.replace("{user}", account.pw_name))


def _steps(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _descend(start: str, steps: Sequence[str]) -> int:
    descriptor = at.open_trusted(start)
    for name in steps:
        above = descriptor
        try:
            descriptor = at.open_at(above, os.fsencode(name), at.PATH | os.O_DIRECTORY)
        finally:
            os.close(above)
    return descriptor


def _may_read(descriptor: int) -> bool:
    return at.may(descriptor, os.R_OK | os.X_OK)
