"""Base classes and types of the response models."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema

from portal.core.units import format_size
from portal.core.validation import STRICT, wrong

REQUEST = STRICT | ConfigDict(use_attribute_docstrings=True)
"""Configuration of the request models."""


def _title(model: type[Any]) -> str:
    return model.__name__.removesuffix("Out")


def _stay_open(schema: dict[str, Any]) -> None:
    # Later versions may add fields, so the schema must not exclude additional properties.
    schema.pop("additionalProperties", None)


class ResponseModel(BaseModel):
    """A response body of the API, or a part of one.

    The docstrings of the fields are their descriptions in the OpenAPI document. A field with a
    default is optional there, and omitted from the JSON unless it was set.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        from_attributes=True,
        use_attribute_docstrings=True,
        model_title_generator=_title,
        json_schema_extra=_stay_open,
    )


class NoContent(ResponseModel):
    """An empty body, sent with status 204."""


Time = Annotated[
    datetime,
    PlainSerializer(datetime.isoformat, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""UTC, serialised with its offset: 2026-11-21T12:00:00+00:00."""


def optional_size(mb: int | None) -> str | None:
    """`mb` (MiB) as formatted by `format_size`; None stays None."""
    return None if mb is None else format_size(mb)


def some_of(most: int, nouns: str) -> BeforeValidator:
    """Reject a list that is empty or too long, before its elements are checked."""

    def check(value: Any) -> Any:
        if isinstance(value, list) and not 0 < len(value) <= most:
            raise wrong(f"name 1 to {most} {nouns}")
        return value

    return BeforeValidator(check)
