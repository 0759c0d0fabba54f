"""Reads what programs send: JSON and nothing else, every key known; and bounds what forms send."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from typing import IO, Any, TypeVar

from flask import Request, request
from pydantic import BaseModel
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType
from werkzeug.formparser import FormDataParser

from portal.core.validation import STRICT, TooDeep, refuse_large, validated
from portal.errors import FieldError, InvalidRequest, clip

Model = TypeVar("Model", bound=BaseModel)

MAX_FIELDS = 600
"""Fields of one form: the largest honest one ends 500 sessions at once."""
_FARTHEST: int = 10**30
"""Out of every bound; so is what has more digits."""
_DEEP = "The body is nested too deeply."


class NotJson(ValueError):
    """What was sent is not JSON as we read it; the text says why."""


class Nothing(BaseModel):
    """The body of a request that has no fields."""

    model_config = STRICT


def read_json(optional: bool = False) -> object:
    """Decode the body; nothing at all counts as {} where the body is optional."""
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


def decode_json(raw: bytes | str) -> object:
    """Decode JSON in UTF-8; raises NotJson for what is not, and for a key that occurs twice."""
    try:
        text = raw.decode() if isinstance(raw, bytes) else raw
        data = json.loads(
            text,
            object_pairs_hook=_no_twins,
            parse_constant=_no_constant,
            parse_int=whole_number,
        )
        if re.search(r"\\u[dD]", text):
            # JSON can write halves of characters; no page or file could repeat them.
            json.dumps(data, ensure_ascii=False).encode()
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(f"is not valid JSON: line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise NotJson("is nested too deeply") from None
    except UnicodeError:
        raise NotJson("has characters that are not valid UTF-8") from None
    return data


def whole_number(digits: str) -> int:
    """A number of any length; reading one of a million digits would take minutes."""
    if len(digits) > len(str(_FARTHEST)):
        return -_FARTHEST if digits.startswith("-") else _FARTHEST
    return int(digits)


def _no_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Two readers of the same body could pick different ones of two equal keys.
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise NotJson(f"has the key {json.dumps(clip(twice))} twice")
    return found


def _no_constant(name: str) -> float:
    raise NotJson(f"is not valid JSON: {name} is no number of it")


def read_model(model: type[Model], optional: bool = False) -> Model:
    """Decode and check the body; raises InvalidRequest that names the wrong fields."""
    data = read_json(optional)
    # As JSON again: in strict mode only that lets a text be one of an enumeration's words.
    return validated(lambda: model.model_validate_json(json.dumps(data)))


def read_nothing() -> None:
    """Refuse a body that has fields, where none is wanted; raises InvalidRequest."""
    read_model(Nothing, optional=True)


def read_query(model: type[Model]) -> Model:
    """Check the query's parameters; each may be given once."""
    twice = [key for key, values in request.args.lists() if len(values) > 1]
    if twice:
        raise InvalidRequest([FieldError(clip(key), "give this only once") for key in twice])
    data: Mapping[str, object] = request.args.to_dict()
    return validated(lambda: model.model_validate(data))


class _FormParser(FormDataParser):
    """Reads forms with so many fields and no more; a library's bound is for multipart alone."""

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
    """A request whose form is refused (413) when it has more fields than any form of ours."""

    form_data_parser_class = _FormParser
