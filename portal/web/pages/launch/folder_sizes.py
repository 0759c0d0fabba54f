"""How large the launcher's folders are, and how much is free: counted while the page is shown."""

from __future__ import annotations

from urllib.parse import quote

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from portal.core.auth.person import Person
from portal.core.units import file_size
from portal.errors import Conflict, InvalidRequest, NotFound, PortalError
from portal.node.common.folder_name import HOME
from portal.web.context import person, services
from portal.web.pages.blueprint import blueprint

MOST = 40
"""Folders of one request."""


@blueprint.get("/folder-sizes")
def folder_sizes() -> ResponseReturnValue:
    """Sizes in words by the folder's name (`name`, repeated); `complete` is False while counting.

    What cannot be counted is left out: the page is for launching.
    """
    who, sizes, complete = person(), {}, True
    try:
        free = _free(who)
        for name in filter(None, dict.fromkeys(request.args.getlist("name")[:MOST])):
            found = None if name == HOME else _size(who, name)
            if found is not None:
                sizes[name], done = found
                complete = complete and done
    except PortalError:
        return jsonify(sizes=sizes, free="", complete=True)
    return jsonify(sizes=sizes, free=free, complete=complete)


def _size(who: Person, name: str) -> tuple[str, bool] | None:
    owner, _, folder = name.rpartition("/")
    area = f"shared/{quote(owner, safe='')}" if owner else "storage"
    try:
        found = services().files.usage(who, f"{area}/{quote(folder, safe='')}")
    except (NotFound, InvalidRequest, Conflict):
        return None
    files = f"{found.files:,} file{'' if found.files == 1 else 's'}"
    return f"{file_size(found.bytes)} in {files}" + ("" if found.complete else " …"), found.complete


def _free(who: Person) -> str:
    """How much of the storage folders' quota is left, or of their file system."""
    found = services().files.quota(who, "storage")
    if found.used is None or found.limit is None:
        return ""
    left = file_size(max(0, found.limit - found.used))
    where = "on the file system" if found.source == "df" else "of your quota"
    return f"{left} free {where} of your storage folders"
