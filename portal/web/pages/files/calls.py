"""Requests of the Files page's scripts to the file server: JSON, by the browser's login."""

from __future__ import annotations

import json
from typing import Any

from flask import Response, jsonify, request
from flask.typing import ResponseReturnValue

from portal.errors import FieldError, InvalidRequest, NotFound, PortalError
from portal.node.common.json_text import NotJson, decode_object
from portal.services.files.files import Json
from portal.web.context import person, services
from portal.web.errors import problem
from portal.web.http.locations import location_after
from portal.web.pages.blueprint import blueprint

READS = frozenset({"list", "entry", "usage", "search", "uploads", "quota"})
CHANGES = frozenset(
    {
        ("POST", "folder"),
        ("POST", "rename"),
        ("POST", "operations"),
        ("DELETE", "operations"),
        ("DELETE", "uploads"),
    }
)


@blueprint.get("/files-ask/operations")
def file_operations() -> ResponseReturnValue:
    """The operations that run or have ended lately; polled while one runs."""
    return _ask("GET", "operations", "")


@blueprint.get("/files-ask/uses/<location:path>")
def folder_uses(path: str) -> ResponseReturnValue:  # noqa: ARG001
    """Say who uses a storage folder: who loses it, and what a new name means for them."""
    try:
        use = services().shares.uses(person(), location_after("/files-ask/uses"))
    except PortalError as error:
        return problem_response(error)
    return jsonify({"lost": use.text if use else "", "renamed": use.renamed if use else ""})


@blueprint.get("/files-ask/<action>")
@blueprint.get("/files-ask/<action>/<location:path>")
def ask_files(action: str, path: str = "") -> ResponseReturnValue:  # noqa: ARG001
    """Send a reading request to the file server."""
    if action not in READS:
        return problem_response(NotFound("There is no such question."))
    return _ask("GET", action, location_after(f"/files-ask/{action}"))


@blueprint.post("/files-ask/<action>")
@blueprint.post("/files-ask/<action>/<location:path>")
def change_files(action: str, path: str = "") -> ResponseReturnValue:  # noqa: ARG001
    """Send a changing request to the file server: `method` and `body` (JSON) of the form."""
    method = request.form.get("method", "POST")
    if (method, action) not in CHANGES:
        return problem_response(NotFound("There is no such action."))
    try:
        body = _body()
    except InvalidRequest as error:
        return problem_response(error)
    return _ask(method, action, location_after(f"/files-ask/{action}"), body)


def _body() -> dict[str, Any]:
    try:
        return decode_object(request.form.get("body") or "{}")
    except NotJson as error:
        raise InvalidRequest([FieldError("body", f"This {error}.")]) from None


def _ask(
    method: str, action: str, location: str, body: dict[str, Any] | None = None
) -> ResponseReturnValue:
    query = {name: request.args[name] for name in request.args}
    try:
        if (method, action) == ("POST", "rename"):
            name = str((body or {}).get("name") or "")
            entry = services().shares.rename(person(), location, name)
            return jsonify({"path": entry.path, "name": entry.name})
        if (method, action) == ("POST", "folder"):
            entry = services().files.make_folder(person(), location)
            return jsonify({"path": entry.path, "name": entry.name})
        if (method, action) == ("POST", "operations"):
            return jsonify(_operate(body or {}))
        return jsonify(services().files.ask(person(), method, action, location, query, body))
    except PortalError as error:
        return problem_response(error)


def _operate(order: dict[str, Any]) -> Json:
    """Start an operation; returns the file server's report on it."""
    if order.get("kind") != "fetch" and not isinstance(order.get("items"), list):
        raise InvalidRequest([FieldError("items", "Name at least one file or folder.")])
    end_shares = order.pop("end_shares", False) is True
    operation = services().shares.operate(person(), order, end_shares=end_shares)
    return services().files.ask(person(), "GET", f"operations/{operation.id}")


def problem_response(error: PortalError) -> Response:
    """A problem document with the code and the field, for the scripts."""
    errors = error.errors if isinstance(error, InvalidRequest) else ()
    text = errors[0].message if errors else error.text
    response = problem(error.status, error.title, text, errors)
    document = json.loads(response.get_data())
    response.set_data(json.dumps(document | {"code": error.code, "field": error.field}))
    if error.status == 503:
        response.headers["Retry-After"] = str(error.retry_seconds)
    return response
