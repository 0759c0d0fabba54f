"""Declares the request and response of an API view, for the OpenAPI document and for mypy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from flask import Response, request
from flask.typing import ResponseReturnValue
from pydantic import BaseModel

from portal.core.admin.etag import etag
from portal.web.api.models.base import NoContent

P = ParamSpec("P")
Model = TypeVar("Model", bound=BaseModel)

IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag that was read; rejected with 409 if the resource has changed since.",
    "schema": {"type": "string"},
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A repeated request with the same key and body is carried out only once.",
    "schema": {"type": "string", "maxLength": 255},
}


@dataclass(frozen=True)
class Reply(Generic[Model]):
    """A response with its own status or headers."""

    body: Model
    status: int | None = None
    """None means the operation's default."""
    headers: Mapping[str, str] = field(default_factory=dict)


def tagged(body: Model, value: BaseModel | None) -> Reply[Model]:
    """A response with the ETag of the value in it."""
    return Reply(body, headers={"ETag": f'"{etag(value)}"'})


def expected_tag() -> str | None:
    """The ETag in If-Match; None without one, or for "*"."""
    sent = request.headers.get("If-Match")
    return None if sent in (None, "*") else sent.strip().strip('"')


@dataclass(frozen=True)
class Operation:
    """An operation of the OpenAPI document."""

    summary: str
    response: type[BaseModel]
    statuses: tuple[int, ...]
    """The default first."""
    body: type[BaseModel] | None = None
    body_required: bool = True
    query: type[BaseModel] | None = None
    header: Mapping[str, Any] | None = None
    """A request header that it accepts."""
    security: list[dict[str, list[str]]] | None = None
    """None means the API's default, a token."""


OPERATIONS: dict[object, Operation] = {}
"""By view function."""


def operation(
    summary: str,
    response: type[Model],
    *,
    status: int | None = None,
    other_statuses: tuple[int, ...] = (),
    body: type[BaseModel] | None = None,
    body_required: bool = True,
    query: type[BaseModel] | None = None,
    header: Mapping[str, Any] | None = None,
    security: list[dict[str, list[str]]] | None = None,
) -> Callable[[Callable[P, Model | Reply[Model]]], Callable[P, ResponseReturnValue]]:
    """Describe a view, and serialise the model that it returns to JSON.

    The default status is 200, or 204 for `NoContent`.
    """
    usual = status or (204 if issubclass(response, NoContent) else 200)
    described = Operation(
        summary=summary,
        response=response,
        statuses=(usual, *other_statuses),
        body=body,
        body_required=body_required,
        query=query,
        header=header,
        security=security,
    )

    def describe(view: Callable[P, Model | Reply[Model]]) -> Callable[P, ResponseReturnValue]:
        @wraps(view)
        def call(*args: P.args, **kwargs: P.kwargs) -> ResponseReturnValue:
            result = view(*args, **kwargs)
            reply = result if isinstance(result, Reply) else Reply(result)
            return _to_json(reply.body), reply.status or usual, dict(reply.headers)

        OPERATIONS[call] = described
        return call

    return describe


def _to_json(model: BaseModel) -> Response | str:
    if isinstance(model, NoContent):
        return ""
    # Serialised without intermediate dicts, which take three times as long for 500 sessions.
    # Numbers that are not finite become null.
    body = model.model_dump_json(exclude_unset=True)
    return Response(f"{body}\n", mimetype="application/json")
