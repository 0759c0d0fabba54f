"""Renames one file or folder within its folder."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from portal.node.file_server.deadlines import Deadlines
from portal.node.file_server.entries import entry
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import PART_PREFIX, check_name, shown
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.renames import rename_new

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from portal.node.file_server.location import Location
    from portal.node.file_server.roots import Dentry, Roots

_ENCODED = re.compile(r"(?:[!-$&-~]|%[0-9A-Fa-f]{2})+")


def rename(
    roots: Roots, deadlines: Deadlines, location: Location, data: Mapping[str, Any]
) -> dict[str, Any]:
    """Rename to the name in a JSON object; returns the entry. Raises Refused.

    Never replaces a file. With `shares_follow` the portal renames a storage folder's shares, too.
    """
    new, field = _new_name(data)
    protected = Protected(roots, deadlines)

    def change() -> dict[str, Any]:
        with roots.resolve(location, follow=False, to_change=True) as dentry:
            if dentry.name == b".":
                raise Refused(409, "root", "Storage areas keep their names.", "path")
            same = new == location.name  # then nothing is moved, so shares stay as well
            with protected.moving(
                dentry.folder, dentry.name, shares_follow=same or data.get("shares_follow") is True
            ):
                if not same:
                    _rename(dentry, new, field)
        return entry(roots, location.parent.child(new))

    return deadlines.call(location.root, change)


def _rename(dentry: Dentry, new: bytes, field: str) -> None:
    try:
        rename_new(dentry.folder, dentry.name, dentry.folder, new)
    except FileExistsError:
        words = f"“{shown(new)}” exists already. Choose another name."
        raise Refused(409, "exists", words, field) from None


def _new_name(data: Mapping[str, Any]) -> tuple[bytes, str]:
    """The new name and the field that has it; raises Refused."""
    encoded, text = data.get("name_path"), data.get("name")
    if isinstance(encoded, str) and _ENCODED.fullmatch(encoded):
        name, field = unquote_to_bytes(encoded), "name_path"
    elif encoded is None and isinstance(text, str):
        try:
            name, field = text.encode(), "name"
        except UnicodeEncodeError:
            raise Refused(422, "name", "This name is not valid text.", "name") from None
    else:
        raise Refused(422, "value", "Write the new name.", "name")
    if name.startswith(PART_PREFIX):
        words = f"Names that begin with “{PART_PREFIX.decode()}” are used by Slipway itself."
        raise Refused(422, "name", words, field)
    return check_name(name, field), field
