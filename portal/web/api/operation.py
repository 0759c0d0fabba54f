"""Declares what a view of the API takes and answers: for the OpenAPI document, and for mypy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from flask.typing import ResponseReturnValue
from pydantic import BaseModel

from portal.web.api.models.base import NoContent

P = ParamSpec("P")
Model = TypeVar("Model", bound=BaseModel)

IF_MATCH = {
    "name": "If-Match",
    "in": "header",
    "description": "The ETag of what was read: refused with 409 when it has changed since.",
    "schema": {"type": "string"},
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key with the same body launches once, however often it is sent.",
    "schema": {"type": "string", "maxLength": 255},
}


@dataclass(frozen=True)
class Reply(Generic[Model]):
    """An answer with a status or headers of its own."""

    body: Model
    status: int | None = None
    """None is the operation's usual one."""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """One operation as the OpenAPI document describes it."""

    summary: str
    answer: type[BaseModel]
    statuses: tuple[int, ...]
    """The usual one first."""
    body: type[BaseModel] | None = None
    body_required: bool = True
    query: type[BaseModel] | None = None
    header: Mapping[str, Any] | None = None
    """A header that it knows."""
    security: list[dict[str, list[str]]] | None = None
    """None is the API's usual one, a token."""


OPERATIONS: dict[object, Operation] = {}
"""By their views."""


def operation(
    summary: str,
    answer: type[Model],
    *,
    status: int | None = None,
    other_statuses: tuple[int, ...] = (),
    body: type[BaseModel] | None = None,
    body_required: bool = True,
    query: type[BaseModel] | None = None,
    header: Mapping[str, Any] | None = None,
    security: list[dict[str, list[str]]] | None = None,
) -> Callable[[Callable[P, Model | Reply[Model]]], Callable[P, ResponseReturnValue]]:
    """Describe a view, and turn the model that it returns into JSON.

    Status is 200 unless said otherwise, and 204 with the answer NoContent.
    """
    usual = status or (204 if issubclass(answer, NoContent) else 200)
    described = Operation(
        summary=summary,
        answer=answer,
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
            found = view(*args, **kwargs)
            reply = found if isinstance(found, Reply) else Reply(found)
            return _to_json(reply.body), reply.status or usual, dict(reply.headers)

        OPERATIONS[call] = described
        return call

    return describe


def _to_json(model: BaseModel) -> Any:
    if isinstance(model, NoContent):
        return ""
    return model.model_dump(mode="json", exclude_unset=True)
