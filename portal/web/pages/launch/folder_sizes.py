"""Sizes of the wizard's folders and the free space, computed while the page is shown."""

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

    Omits folders that cannot be counted, since the sizes are not needed for a launch.
    """
    user, sizes, complete = person(), {}, True
    try:
        free = _free(user)
        for name in filter(None, dict.fromkeys(request.args.getlist("name")[:MOST])):
            size = None if name == HOME else _size(user, name)
            if size is not None:
                sizes[name], counted = size
                complete = complete and counted
    except PortalError:
        return jsonify(sizes=sizes, free="", complete=True)
    return jsonify(sizes=sizes, free=free, complete=complete)


def _size(user: Person, name: str) -> tuple[str, bool] | None:
    owner, _, folder = name.rpartition("/")
    area = f"shared/{quote(owner, safe='')}" if owner else "storage"
    try:
        usage = services().files.usage(user, f"{area}/{quote(folder, safe='')}")
    except (NotFound, InvalidRequest, Conflict):
        return None
    files = f"{usage.files:,} file{'' if usage.files == 1 else 's'}"
    return f"{file_size(usage.bytes)} in {files}" + ("" if usage.complete else " …"), usage.complete


def _free(user: Person) -> str:
    """The remaining quota of the storage folders, or the free space of their file system."""
    quota = services().files.quota(user, "storage")
    if quota.used is None or quota.limit is None:
        return ""
    left = file_size(max(0, quota.limit - quota.used))
    where = "on the file system" if quota.source == "df" else "of your quota"
    return f"{left} free {where} of your storage folders"
