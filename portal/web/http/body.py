"""Reads request bodies: strict JSON without unknown keys for the API; limits the size of forms."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import IO, Any, TypeVar

from flask import Request, request
from pydantic import BaseModel
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.formparser import FormDataParser

from portal.core.validation import STRICT, TooDeep, refuse_large, validated
from portal.errors import FieldError, InvalidRequest, clip
from portal.node.common.json_text import NotJson, decode_json

Model = TypeVar("Model", bound=BaseModel)

MAX_FIELDS = 600
"""Fields of one form; the largest legitimate one ends 500 sessions at once."""
_DEEP = "The body is nested too deeply."


class Nothing(BaseModel):
    """The body of a request that has no fields."""

    model_config = STRICT


def read_json(optional: bool = False) -> object:
    """Decode the body; an empty one counts as {} if `optional`."""
    raw = request.get_data()
    if optional and not raw:
        return {}
    if request.mimetype != "application/json":
        raise UnsupportedMediaType("Send JSON, with Content-Type: application/json.")
    try:
        data = decode_json(raw)
        refuse_large(data)
    except NotJson as error:
        raise BadRequest(f"The body {error}.") from None
    except TooDeep:
        raise BadRequest(_DEEP) from None
    return data


def read_model(model: type[Model], optional: bool = False) -> Model:
    """Decode and validate the body; raises InvalidRequest, which names the invalid fields."""
    data = read_json(optional)
    # Encoded again: in strict mode, pydantic accepts a string for an enum only from JSON.
    return validated(lambda: model.model_validate_json(json.dumps(data)))


def read_nothing() -> None:
    """Check that the body has no fields; raises InvalidRequest."""
    read_model(Nothing, optional=True)


def read_query(model: type[Model]) -> Model:
    """Validate the query parameters; each may be given only once."""
    repeated = [key for key, values in request.args.lists() if len(values) > 1]
    if repeated:
        raise InvalidRequest([FieldError(clip(key), "give this only once") for key in repeated])
    data: Mapping[str, object] = request.args.to_dict()
    return validated(lambda: model.model_validate(data))


class _FormParser(FormDataParser):
    """Limits the number of fields; werkzeug's own limit covers only multipart forms."""

    def parse(
        self,
        stream: IO[bytes],
        mimetype: str,
        content_length: int | None,
        options: dict[str, str] | None = None,
    ) -> Any:
        if mimetype == "application/x-www-form-urlencoded":
            if (content_length or 0) > (self.max_form_memory_size or 0):
                raise RequestEntityTooLarge
            data = stream.read()
            if data.count(b"&") >= MAX_FIELDS:
                raise RequestEntityTooLarge
            stream = io.BytesIO(data)
        return super().parse(stream, mimetype, content_length, options)


class BoundedRequest(Request):
    """A request whose form is rejected (413) if it has more than MAX_FIELDS fields."""

    form_data_parser_class = _FormParser
