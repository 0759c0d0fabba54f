"""What all answers have in common."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PlainSerializer, WithJsonSchema

from portal.core.units import format_size
from portal.core.validation import STRICT

REQUEST = STRICT | ConfigDict(use_attribute_docstrings=True)
"""Configuration of the models of requests."""


def _title(model: type[Any]) -> str:
    return model.__name__.removesuffix("Out")


def _stay_open(schema: dict[str, Any]) -> None:
    # Later versions may add fields, so clients are not told that there will be no others.
    schema.pop("additionalProperties", None)


class Answer(BaseModel):
    """An answer of the API, or a part of one.

    The docstrings of the fields are their descriptions in the OpenAPI document. A field with a
    default is optional there, and left out of the JSON where it was not given.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        from_attributes=True,
        use_attribute_docstrings=True,
        model_title_generator=_title,
        json_schema_extra=_stay_open,
    )


class NoContent(Answer):
    """No body at all: status 204."""


Time = Annotated[
    datetime,
    PlainSerializer(datetime.isoformat, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""In UTC, written with its offset: 2026-11-21T12:00:00+00:00."""


def optional_size(mb: int | None) -> str | None:
    """Write MiB as `format_size` does; None stays None."""
    return None if mb is None else format_size(mb)
