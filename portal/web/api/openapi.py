"""The OpenAPI document, built from the routes, their operations and the models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

from apispec import APISpec
from flask import Flask
from pydantic import BaseModel, RootModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from portal.core.launch.request import LaunchRequest
from portal.web.api import (
    PREFIX,
    estimate,
    jobs,
    lifecycle,
    open_to_all,
    people,
    presets,
    sessions,
    site,
    ssh,
    storage,
    tokens,
)
from portal.web.api.choice import views as choice
from portal.web.api.compose import submission
from portal.web.api.compose import templates as job_templates
from portal.web.api.files import shares
from portal.web.api.files import views as files
from portal.web.api.images import views as images
from portal.web.api.models.base import NoContent
from portal.web.api.operation import OPERATIONS, Operation, operation
from portal.web.api.operations import notices
from portal.web.api.registries import views as registries
from portal.web.context import services
from portal.web.errors import Problem
from portal.web.http.locations import LocationConverter

blueprint = open_to_all("openapi")

BLUEPRINTS = (
    tokens.blueprint,
    sessions.blueprint,
    presets.blueprint,
    registries.blueprint,
    lifecycle.blueprint,
    jobs.blueprint,
    submission.blueprint,
    job_templates.blueprint,
    estimate.blueprint,
    storage.blueprint,
    files.blueprint,
    shares.blueprint,
    site.blueprint,
    choice.blueprint,
    images.blueprint,
    ssh.blueprint,
    people.blueprint,
    notices.blueprint,
    blueprint,
)
"""All parts of the API."""

_COMPONENTS = "#/components/schemas/"
Mode = Literal["validation", "serialization"]


class Document(RootModel[dict[str, Any]]):
    """An OpenAPI document."""


@blueprint.get("/openapi.json")
@operation("This document", Document, security=[])
def get_openapi() -> Document:
    """The OpenAPI document; needs no token."""
    return _document(services().settings.web.public_url)


@cache
def _document(public_url: str) -> Document:
    # Cached because it is public and building it takes tens of milliseconds.
    return Document(document(public_url))


_TAGS = {
    "lifecycle": "sessions",
    "estimate": "sessions",
    "presets": "sessions",
    "ssh": "sessions",
    "job_submission": "jobs",
    "shares": "files",
    "folders": "files",
    "site": "cluster",
    "choice": "cluster",
    "images": "cluster",
    "notices": "announcements",
    "openapi": "cluster",
}
"""The tag of each part of the API whose name is none."""


class _Schemas(GenerateJsonSchema):
    """Names components without "Out", and omits titles, which would only repeat field names."""

    def normalize_name(self, name: str) -> str:
        """The component name of a model."""
        return super().normalize_name(name).removesuffix("Out")

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


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
    found = list(_operations())
    schemas, components = _schemas([one for *_, one in found])
    for name, schema in components.items():
        spec.components.schema(name, schema)
    problem = {"schema": schemas[Problem, "serialization"]}
    described = {"description": "What went wrong", "content": {"application/problem+json": problem}}
    spec.components.response("Problem", described)
    for path, method, endpoint, one in found:
        described = _named(endpoint) | _described(one, schemas)
        spec.path(path, operations={method: described}, parameters=_in_path(path))
    return spec.to_dict()


def _operations() -> Iterator[tuple[str, str, str, Operation]]:
    """Path, method, endpoint and operation of every route.

    Raises KeyError for an undeclared view.
    """
    app = Flask("api", static_folder=None)
    app.url_map.converters["location"] = LocationConverter
    for part in BLUEPRINTS:
        app.register_blueprint(part)
    for rule in app.url_map.iter_rules():
        path = re.sub(r"<(?:location:)?(\w+)>", r"{\1}", rule.rule.removeprefix(PREFIX))
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            described = OPERATIONS[app.view_functions[rule.endpoint]]
            yield path, method.lower(), rule.endpoint, described


def _named(endpoint: str) -> dict[str, Any]:
    """How generated clients call an operation: by its view's name, in a group of related ones."""
    part, _, view = endpoint.removeprefix("api_").partition(".")
    return {"operationId": view, "tags": [_TAGS.get(part, part.replace("_", "-"))]}


Schemas = dict[tuple[Any, Mode], dict[str, Any]]
"""References by model and mode."""


def _schemas(operations: list[Operation]) -> tuple[Schemas, dict[str, Any]]:
    """References to the schemas of all models, and the schemas by name.

    Query schemas are returned inline, since their fields become parameters.
    """
    wanted: dict[tuple[type[BaseModel], Mode], None] = {(Problem, "serialization"): None}
    for one in operations:
        if not issubclass(one.response, NoContent):
            wanted[one.response, "serialization"] = None
        wanted |= {(model, "validation"): None for model in (one.body, one.query) if model}
    references, found = models_json_schema(
        list(wanted), ref_template=_COMPONENTS + "{model}", schema_generator=_Schemas
    )
    components = found["$defs"]
    for query in {one.query for one in operations if one.query}:
        name = references[query, "validation"]["$ref"].removeprefix(_COMPONENTS)
        references[query, "validation"] = components.pop(name)
    references = {of: _renamed(reference) for of, reference in references.items()}
    components = _unique(components)
    _state_alternatives(components[LaunchRequest.__name__])
    return references, components


def _unique(components: dict[str, Any]) -> dict[str, Any]:
    """Each under its own name, which is its title; raises ValueError for two of the same name."""
    unique: dict[str, Any] = {}
    for name, schema in components.items():
        new = _name(name)
        if new in unique or not new.isalnum():
            raise ValueError(f"two models of the API have the same name: {name}")
        unique[new] = _renamed(schema) | {"title": new}
    return unique


def _name(component: str) -> str:
    """pydantic tells the two forms of a model apart that is both sent and received."""
    name, _, form = component.partition("-")
    return f"{name}Request" if form == "Input" else name


def _renamed(schema: Any) -> Any:
    """The schema, with references to the components' own names."""
    if isinstance(schema, dict):
        return {
            key: _COMPONENTS + _name(value.removeprefix(_COMPONENTS))
            if key == "$ref"
            else _renamed(value)
            for key, value in schema.items()
        }
    return [_renamed(one) for one in schema] if isinstance(schema, list) else schema


def _state_alternatives(schema: dict[str, Any]) -> None:
    """A launch request names a template or resources, and an environment or an own image."""
    text = "one of /templates, in place of resources"
    schema["properties"]["template"] = {"type": ["string", "null"], "description": text}
    schema.pop("required")
    schema["allOf"] = [
        {"anyOf": [{"required": [name]} for name in names]}
        for names in (("environment", "image"), ("resources", "template"))
    ]


def _described(one: Operation, schemas: Schemas) -> dict[str, Any]:
    done: dict[str, Any] = {"description": "Done"}
    if not issubclass(one.response, NoContent):
        done = _json(schemas[one.response, "serialization"], "Done")
    responses = {str(status): done for status in one.statuses}
    operation: dict[str, Any] = {
        "summary": one.summary,
        "responses": responses | {"default": {"$ref": "#/components/responses/Problem"}},
    }
    if one.body:
        body = _json(schemas[one.body, "validation"], "")
        operation["requestBody"] = body | {"required": one.body_required}
    parameters = _in_query(schemas[one.query, "validation"]) if one.query else []
    parameters += [dict(one.header)] if one.header else []
    if parameters:
        operation["parameters"] = parameters
    if one.security is not None:
        operation["security"] = one.security
    return operation


def _json(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}


def _in_query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    required = schema.get("required", ())
    return [
        {"name": name, "in": "query", "schema": field}
        | ({"required": True} if name in required else {})
        for name, field in schema["properties"].items()
    ]


def _in_path(path: str) -> list[dict[str, Any]]:
    text = {"type": "string"}
    return [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in re.findall(r"\{(\w+)\}", path)
    ]
