"""Reads what programs send: JSON and nothing else, every key known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TypeVar

from flask import request
from pydantic import BaseModel, ValidationError
from werkzeug.exceptions import BadRequest, UnsupportedMediaType

from portal.core.launch import field_errors
from portal.errors import InvalidRequest

Model = TypeVar("Model", bound=BaseModel)


def read_json(optional: bool = False) -> object:
    """Decode the body; nothing at all counts as {} where the body is optional."""
    raw = request.get_data()
    if optional and not raw:
        return {}
    if request.mimetype != "application/json":
        raise UnsupportedMediaType("Send JSON, with Content-Type: application/json.")
    try:
        return decode_json(raw)
    except (ValueError, RecursionError):
        raise BadRequest("The body is not valid JSON.") from None


def decode_json(raw: bytes | str) -> object:
    """Decode JSON; raises ValueError for what is not, and for a key that occurs twice."""
    data = json.loads(raw, object_pairs_hook=_no_twins, parse_constant=_no_constant)
    # JSON can write halves of characters; no page or file could repeat them. Raises ValueError.
    json.dumps(data, ensure_ascii=False).encode()
    return data


def _no_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Two readers of the same body could pick different ones of two equal keys.
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def read_model(model: type[Model], optional: bool = False) -> Model:
    """Decode and check the body; raises InvalidRequest that names every wrong field."""
    data = read_json(optional)
    try:
        # As JSON again: in strict mode only that lets a text be one of an enumeration's words.
        return model.model_validate_json(json.dumps(data))
    except ValidationError as error:
        raise InvalidRequest(field_errors(error)) from None


def read_query(model: type[Model]) -> Model:
    """Check the query's parameters; each may be given once."""
    data: Mapping[str, object] = {
        key: values[0] if len(values) == 1 else values for key, values in request.args.lists()
    }
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise InvalidRequest(field_errors(error)) from None
