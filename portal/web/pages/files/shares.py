"""The shares of a storage folder: JSON for the Files page's dialog."""

from __future__ import annotations

from typing import get_args

from flask import jsonify, request
from flask.typing import ResponseReturnValue

from portal.core.files.shares import Access, FolderShare, Kind, ShareKey
from portal.errors import FieldError, InvalidRequest, PortalError
from portal.web.context import person, services
from portal.web.pages.blueprint import blueprint
from portal.web.pages.files.calls import problem_response


@blueprint.get("/files-shares/<folder>")
def list_folder_shares(folder: str) -> ResponseReturnValue:
    """The users and groups that a folder is shared with."""
    try:
        shares, change = services().shares.of_folder(person(), folder)
    except PortalError as error:
        return problem_response(error)
    return jsonify({"shares": [_share(share) for share in shares], "change": dict(change)})


@blueprint.post("/files-shares/<folder>")
def change_folder_share(folder: str) -> ResponseReturnValue:
    """Share a folder, or revoke a share if `access` is empty."""
    try:
        key = _key(folder)
        access = request.form.get("access", "")
        if not access:
            ended = services().shares.take_back(person(), key)
            return jsonify({"running": not ended})
        if access not in get_args(Access):
            raise InvalidRequest([FieldError("access", "choose read or write")])
        _, report = services().shares.share(person(), key, "write" if access == "write" else "read")
    except PortalError as error:
        return problem_response(error)
    return jsonify({"running": bool(report.get("running")), "change": dict(report)})


def _key(folder: str) -> ShareKey:
    kind, name = request.form.get("kind", ""), request.form.get("name", "").strip()
    if kind not in get_args(Kind):
        raise InvalidRequest([FieldError("kind", "choose a user or a group")])
    return ShareKey(person().name, folder, "group" if kind == "group" else "user", name)


def _share(share: FolderShare) -> dict[str, str]:
    key = share.key
    return {"kind": key.kind, "name": key.name, "access": share.access, "state": share.state.value}
