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
    notices,
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
"""The tags of those parts of the API whose tag differs from the part's name."""


class _Schemas(GenerateJsonSchema):
    """Names components without "Out", and omits titles, which would only repeat field names."""

    def normalize_name(self, name: str) -> str:
        """The component name of a model."""
        return super().normalize_name(name).removesuffix("Out")

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Omit all field titles."""
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
    operations = list(_operations())
    schemas, components = _schemas([declared for *_, declared in operations])
    for name, schema in components.items():
        spec.components.schema(name, schema)
    problem = {"schema": schemas[Problem, "serialization"]}
    content = {"application/problem+json": problem}
    spec.components.response("Problem", {"description": "What went wrong", "content": content})
    for path, method, endpoint, declared in operations:
        item = _naming(endpoint) | _operation_object(declared, schemas)
        spec.path(path, operations={method: item}, parameters=_in_path(path))
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
            declared = OPERATIONS[app.view_functions[rule.endpoint]]
            yield path, method.lower(), rule.endpoint, declared


def _naming(endpoint: str) -> dict[str, Any]:
    """The operation's id (its view's name) and tag, by which generated clients name it."""
    part, _, view = endpoint.removeprefix("api_").partition(".")
    return {"operationId": view, "tags": [_TAGS.get(part, part.replace("_", "-"))]}


Schemas = dict[tuple[Any, Mode], dict[str, Any]]
"""References by model and mode."""


def _schemas(operations: list[Operation]) -> tuple[Schemas, dict[str, Any]]:
    """References to the schemas of all models, and the schemas by name.

    Query schemas are returned inline, since their fields become parameters.
    """
    models: dict[tuple[type[BaseModel], Mode], None] = {(Problem, "serialization"): None}
    for declared in operations:
        if not issubclass(declared.response, NoContent):
            models[declared.response, "serialization"] = None
        models |= {
            (model, "validation"): None for model in (declared.body, declared.query) if model
        }
    references, definitions = models_json_schema(
        list(models), ref_template=_COMPONENTS + "{model}", schema_generator=_Schemas
    )
    components = definitions["$defs"]
    for query in {declared.query for declared in operations if declared.query}:
        name = references[query, "validation"]["$ref"].removeprefix(_COMPONENTS)
        references[query, "validation"] = components.pop(name)
    references = {of: _with_final_refs(reference) for of, reference in references.items()}
    components = _unique(components)
    _state_alternatives(components[LaunchRequest.__name__])
    return references, components


def _unique(components: dict[str, Any]) -> dict[str, Any]:
    """The schemas by their final names, as titles too; raises ValueError for duplicates."""
    unique: dict[str, Any] = {}
    for name, schema in components.items():
        new = _name(name)
        if new in unique or not new.isalnum():
            raise ValueError(f"two models of the API have the same name: {name}")
        unique[new] = _with_final_refs(schema) | {"title": new}
    return unique


def _name(component: str) -> str:
    """The name of a component; pydantic marks the input form of models with two forms."""
    name, _, form = component.partition("-")
    return f"{name}Request" if form == "Input" else name


def _with_final_refs(schema: Any) -> Any:
    """A copy of the schema with references to the components' final names."""
    if isinstance(schema, dict):
        return {
            key: _COMPONENTS + _name(value.removeprefix(_COMPONENTS))
            if key == "$ref"
            else _with_final_refs(value)
            for key, value in schema.items()
        }
    return [_with_final_refs(item) for item in schema] if isinstance(schema, list) else schema


def _state_alternatives(schema: dict[str, Any]) -> None:
    """Require a template or resources, and an environment or an own image, in a launch request."""
    text = "one of /templates, in place of resources"
    schema["properties"]["template"] = {"type": ["string", "null"], "description": text}
    schema.pop("required")
    schema["allOf"] = [
        {"anyOf": [{"required": [name]} for name in names]}
        for names in (("environment", "image"), ("resources", "template"))
    ]


def _operation_object(declared: Operation, schemas: Schemas) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done"}
    if not issubclass(declared.response, NoContent):
        success = _json(schemas[declared.response, "serialization"], "Done")
    responses = {str(status): success for status in declared.statuses}
    operation: dict[str, Any] = {
        "summary": declared.summary,
        "responses": responses | {"default": {"$ref": "#/components/responses/Problem"}},
    }
    if declared.body:
        body = _json(schemas[declared.body, "validation"], "")
        operation["requestBody"] = body | {"required": declared.body_required}
    parameters = _in_query(schemas[declared.query, "validation"]) if declared.query else []
    parameters += [dict(declared.header)] if declared.header else []
    if parameters:
        operation["parameters"] = parameters
    if declared.security is not None:
        operation["security"] = declared.security
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
