"""The API's own description; a test keeps it and the routes the same."""

from __future__ import annotations

from typing import Any

from apispec import APISpec
from flask.typing import ResponseReturnValue
from pydantic import BaseModel

from portal.core.admin.administration import CapsRequest, ImageRequest, TemplateRequest
from portal.core.admin.audit import AuditQuery
from portal.core.launch.request import LaunchRequest
from portal.core.session.query import ListQuery
from portal.web.api import PREFIX, open_to_all
from portal.web.api.lifecycle import ExtendRequest
from portal.web.api.schemas import SCHEMAS
from portal.web.api.sessions import AppRequest, EndRequest, LogQuery
from portal.web.api.site import UseQuery
from portal.web.api.ssh import KeyRequest
from portal.web.api.storage import FolderRequest
from portal.web.api.tokens import TokenRequest
from portal.web.context import services

blueprint = open_to_all("openapi")

SESSION = "/sessions/{session_id}"
APP = SESSION + "/apps/{app}"
PRESET = "/presets/{name}"
_SEEN = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of what was read: refused with 409 when it has changed since.",
    "schema": {"type": "string"},
}
_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key with the same body launches once, however often sent.",
    "schema": {"type": "string", "maxLength": 255},
}


BODIES: tuple[type[BaseModel], ...] = (
    LaunchRequest,
    TokenRequest,
    AppRequest,
    ExtendRequest,
    EndRequest,
    FolderRequest,
    KeyRequest,
    TemplateRequest,
    ImageRequest,
    CapsRequest,
)
_OPTIONAL = ("AppRequest", "ExtendRequest", "KeyRequest")


def _schema(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(ref_template="#/components/schemas/{model}")


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _list_of(key: str, name: str, **more: Any) -> dict[str, Any]:
    items = {"type": "array", "items": _ref(name)}
    return {"type": "object", "properties": {key: items} | more, "required": [key]}


def _query(model: type[BaseModel]) -> list[dict[str, Any]]:
    properties = _schema(model)["properties"]
    return [{"name": n, "in": "query", "schema": schema} for n, schema in properties.items()]


def _operation(
    summary: str,
    status: int,
    result: dict[str, Any] | None,
    body: str | None = None,
    parameters: list[dict[str, Any]] | None = None,
    public: bool = False,
    made: bool = False,
) -> dict[str, Any]:
    done: dict[str, Any] = _json(result, "Done") if result else {"description": "Done"}
    operation: dict[str, Any] = {
        "summary": summary,
        "responses": {str(status): done, "default": {"$ref": "#/components/responses/Problem"}},
    }
    if made:
        operation["responses"]["201"] = done
    if body:
        operation["requestBody"] = _json(_ref(body), "") | {"required": body not in _OPTIONAL}
    if parameters:
        operation["parameters"] = parameters
    if public:
        operation["security"] = []
    return operation


def _operations() -> dict[str, dict[str, Any]]:
    cursor = {"type": ["string", "null"]}
    sessions = _list_of("sessions", "Session", next_cursor=cursor)
    launched = _list_of("sessions", "Session")
    environments = _list_of("environments", "Environment")
    groups = _list_of("resource_groups", "ResourceGroup")
    presets = _list_of("presets", "Preset")
    templates = _list_of("templates", "OfferedTemplate")
    me, app = _ref("Me"), _ref("OpenApp")
    return {
        **_for_tokens(),
        "/sessions": {
            "get": _operation(
                "List sessions, a page at a time", 200, sessions, None, _query(ListQuery)
            ),
            "post": _operation(
                "Launch sessions, all or none",
                201,
                launched,
                "LaunchRequest",
                [_KEY],
            ),
        },
        "/sessions/estimate": {
            "post": _operation(
                "When such a session would start, by Slurm's own guess; nothing is launched",
                200,
                _ref("Estimate"),
                "LaunchRequest",
            )
        },
        "/sessions/end": {
            "post": _operation("End many sessions, all or none", 202, launched, "EndRequest")
        },
        SESSION: {
            "get": _operation("Show one session", 200, _ref("Session")),
            "delete": _operation("End a session; again is fine", 202, _ref("Session")),
        },
        SESSION + "/relaunch": {
            "post": _operation("Launch one like it", 201, launched, None, [_KEY])
        },
        "/presets": {"get": _operation("List presets", 200, presets)},
        PRESET: {
            "put": _operation(
                "Keep a launch under a name", 200, _ref("Preset"), "LaunchRequest", made=True
            ),
            "delete": _operation("Forget a preset", 204, None),
        },
        PRESET + "/launch": {"post": _operation("Launch a preset", 201, launched, None, [_KEY])},
        SESSION + "/log": {
            "get": _operation("Read a session's log", 200, _ref("Log"), None, _query(LogQuery))
        },
        SESSION + "/extend": {
            "post": _operation(
                "Give a running session more time", 200, _ref("Session"), "ExtendRequest"
            )
        },
        SESSION + "/keep": {
            "post": _operation("Let an unused session go on; counts as use", 200, _ref("Session"))
        },
        SESSION + "/release": {
            "post": _operation("Release a session that its owner holds", 200, _ref("Session"))
        },
        APP: {
            "post": _operation("Open an app", 200, app, "AppRequest"),
            "delete": _operation("Shut all ways into an app", 204, None),
        },
        SESSION + "/ssh": {"get": _operation("How to reach it by SSH", 200, _ref("SshDoor"))},
        "/environments": {"get": _operation("What can be launched", 200, environments)},
        "/folders": {
            "get": _operation("What can be mounted", 200, _list_of("folders", "Folder")),
            "post": _operation("Make a storage folder", 201, _ref("Folder"), "FolderRequest"),
        },
        "/templates": {"get": _operation("Resources with a name", 200, templates)},
        "/resource-groups": {"get": _operation("Where it can run", 200, groups)},
        "/usage": {"get": _operation("What you hold", 200, _ref("Usage"), None, _query(UseQuery))},
        "/me": {"get": _operation("Whom the token stands for", 200, me)},
        "/me/id_container": {
            "post": _operation("Your private SSH key", 200, _ref("SshKey"), "KeyRequest")
        },
        **_for_administrators(),
        "/openapi.json": {
            "get": _operation("This document", 200, {"type": "object"}, None, None, True)
        },
    }


def _for_tokens() -> dict[str, dict[str, Any]]:
    make = _operation(
        "Make a token, with a password or with another token",
        201,
        _ref("NewToken"),
        "TokenRequest",
    )
    return {
        "/tokens": {
            "get": _operation("Your tokens", 200, _list_of("tokens", "Token")),
            "post": make | {"security": [{}, {"token": []}]},
            "delete": _operation("Revoke all of your tokens", 204, None),
        },
        "/tokens/{token_id}": {"delete": _operation("Revoke a token", 204, None)},
        "/admin/people": {
            "get": _operation("Everybody who is logged in", 200, _list_of("people", "Presence"))
        },
        "/admin/people/{name}/logins": {
            "get": _operation("Somebody's log-ins and tokens", 200, _list_of("logins", "Login")),
            "delete": _operation("Log somebody out everywhere, tokens included", 204, None),
        },
        "/admin/people/{name}/logins/{login_id}": {
            "delete": _operation("Revoke one log-in or token", 204, None)
        },
    }


def _for_administrators() -> dict[str, dict[str, Any]]:
    template, rule, caps = _ref("Template"), _ref("ImageRule"), _ref("Caps")
    entries = _list_of("entries", "JournalEntry", next_cursor={"type": ["string", "null"]})
    return {
        "/admin/templates/{name}": {
            "get": _operation("Show a resource template", 200, template),
            "put": _operation(
                "Make or replace a resource template", 200, template, "TemplateRequest", [_SEEN]
            ),
            "delete": _operation("Delete a resource template", 204, None, None, [_SEEN]),
        },
        "/admin/images": {
            "get": _operation("All images, and who sees each", 200, _list_of("images", "ImageRule"))
        },
        "/admin/images/{environment}/{version}": {
            "get": _operation("Who sees an image", 200, rule),
            "put": _operation("Decide who sees an image", 200, rule, "ImageRequest", [_SEEN]),
        },
        "/admin/caps": {
            "get": _operation("The caps", 200, caps),
            "put": _operation("Replace the caps", 200, caps, "CapsRequest", [_SEEN]),
        },
        "/admin/limits": {"get": _operation("Slurm's limits, in words", 200, _ref("Limits"))},
        "/journal": {
            "get": _operation("Who did what, newest first", 200, entries, None, _query(AuditQuery))
        },
    }


def document(public_url: str) -> dict[str, Any]:
    """Build the OpenAPI document."""
    spec = APISpec(
        title="Slipway",
        version="1",
        openapi_version="3.1.0",
        info={"description": "Errors are problem details (RFC 9457) that name wrong fields."},
        servers=[{"url": public_url.rstrip("/") + PREFIX}],
        security=[{"token": []}],
    )
    spec.components.security_scheme("token", {"type": "http", "scheme": "bearer"})
    for model in BODIES:
        schema = _schema(model)
        if model is LaunchRequest:
            _allow_template(schema)
        for name, part in schema.pop("$defs", {}).items():
            if name not in spec.components.schemas:  # launches and templates share some
                spec.components.schema(name, part)
        spec.components.schema(model.__name__, schema)
    for name, part in _schema(ListQuery).get("$defs", {}).items():
        spec.components.schema(name, part)
    for name, schema in SCHEMAS.items():
        spec.components.schema(name, schema)
    content = {"application/problem+json": {"schema": _ref("Problem")}}
    spec.components.response("Problem", {"description": "What went wrong", "content": content})
    for path, operations in _operations().items():
        spec.path(path, operations=operations, parameters=_in_path(path))
    return spec.to_dict()


def _allow_template(schema: dict[str, Any]) -> None:
    """A launch names its resources, or a template that stands for them."""
    text = "one of /templates, in place of resources"
    schema["properties"]["template"] = {"type": ["string", "null"], "description": text}
    schema["required"].remove("resources")
    schema["anyOf"] = [{"required": ["resources"]}, {"required": ["template"]}]


def _in_path(path: str) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    text = {"type": "string"}
    return [{"name": name, "in": "path", "required": True, "schema": text} for name in names]


@blueprint.get("/openapi.json")
def openapi() -> ResponseReturnValue:
    """The description of this API, for everybody."""
    return document(services().settings.web.public_url)
