"""Validation of input, and conversion of pydantic's errors to messages for users.

Two bounds keep responses small and fast for any input: oversized input is refused before its
elements are validated, and InvalidRequest lists the first ten wrong fields only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ValidationError,
)
from pydantic_core import PydanticCustomError, core_schema

from portal.errors import FieldError, InvalidRequest, clip

BODY = "body"
"""The field named in errors about a body without fields."""

MAX_ITEMS = 1000
"""Elements of one list, or keys of one object: twice what any valid request has."""
MAX_VALUES = 2500
"""Values in one request in total."""
MAX_DEPTH = 16

Model = TypeVar("Model", bound=BaseModel)

_TIME = "use a time with its offset, for example 2026-11-21T12:00:00+00:00"
_WHOLE = "this must be a whole number"
_NUMBER = "this must be a number, for example 0.5"
_OBJECT = "this must be an object with its own fields"
_MESSAGES = {
    "missing": "this is needed",
    "extra_forbidden": "there is no such field",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "int_parsing_size": "this number is too large",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": _NUMBER,
    "string_type": "this must be text",
    "string_unicode": "this must be text",
    "string_too_long": "use up to {max_length} characters",
    "string_too_short": "this must not be empty",
    "string_pattern_mismatch": "this has characters that are not allowed here",
    "greater_than": "this must be above {gt}",
    "greater_than_equal": "this must be at least {ge}",
    "less_than": "this must be below {lt}",
    "less_than_equal": "this must be at most {le}",
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dict_type": "this must be an object of names and values",
    "tuple_type": "this must be a list",
    "list_type": "this must be a list",
    "bool_type": "this must be true or false",
    "bool_parsing": "this must be true or false",
    "too_long": "these are too many; there may be {max_length}",
    "too_short": "there must be at least {min_length} of these",
    "literal_error": "choose {expected}",
    "enum": "choose {expected}",
    "timezone_aware": _TIME,
}

_LIBRARY = frozenset(get_args(core_schema.ErrorType))
"""pydantic's own error types; all others are raised by our validators."""


class TooDeep(InvalidRequest):
    """Lists and objects nested more deeply than in any valid request."""


def wrong(message: str) -> PydanticCustomError:
    """A validator's error with its own message."""
    # Passed as a value, since braces in it are not placeholders.
    return PydanticCustomError("words", "{message}", {"message": message})


def checked(check: Callable[[str], str]) -> AfterValidator:
    """Build a validator from a function that raises ValueError with a message for users."""

    def validate(text: str) -> str:
        try:
            return check(text)
        except ValueError as error:
            raise wrong(str(error)) from None

    return AfterValidator(validate)


@dataclass(frozen=True)
class Matching:
    """For Annotated: the whole text must match an ASCII pattern; `rule` is the error message."""

    pattern: str
    rule: str

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "pattern": f"^{self.pattern}$"}

    def _check(self, text: str) -> str:
        if not re.fullmatch(self.pattern, text, re.ASCII):
            raise wrong(self.rule)
        return text


def at_most(number: int) -> BeforeValidator:
    """Refuse collections with more elements, before any of them is validated."""

    def validate(value: Any) -> Any:
        if isinstance(value, list | tuple | dict) and len(value) > number:
            raise wrong(f"these are too many; there may be {number}")
        return value

    return BeforeValidator(validate)


def names_of(names: Iterable[str], shown: int = 10) -> str:
    """A list for a message: the first `shown` names, and the number of the others."""
    listed = list(names)
    hidden = len(listed) - shown
    text = ", ".join(clip(name) for name in listed[:shown])
    return f"{text} and {hidden} more" if hidden > 0 else text


def refuse_large(data: object) -> None:
    """Refuse input that is far larger than any valid request; raises InvalidRequest.

    Limits the elements of a list or object, the total number of values, and the depth.
    """
    total = 0
    level = [("", data)]
    for _ in range(MAX_DEPTH + 1):
        below: list[tuple[str, object]] = []
        for field, value in level:
            if not isinstance(value, Mapping | list | tuple):
                continue
            total += len(value)
            if len(value) > MAX_ITEMS or total > MAX_VALUES:
                text = "these are far more than any request needs"
                raise InvalidRequest([FieldError(field or BODY, text)])
            items = value.items() if isinstance(value, Mapping) else enumerate(value)
            below += [(field or _part(key), inner) for key, inner in items]
        level = below
        if not level:
            return
    raise TooDeep([FieldError(level[0][0], "this is nested too deeply")])


def check(model: type[Model], data: object) -> Model:
    """Validate untrusted input; raises InvalidRequest that names the wrong fields."""
    refuse_large(data)
    return validated(lambda: model.model_validate(data))


def validated(validate: Callable[[], Model]) -> Model:
    """Run a pydantic validation; converts its error to InvalidRequest."""
    try:
        return validate()
    except ValidationError as error:
        raise InvalidRequest(field_errors(error)) from None


def field_errors(error: ValidationError) -> list[FieldError]:
    """The wrong fields with plain messages; never includes their values."""
    details = error.errors(include_url=False, include_input=False)
    return [_field_error(dict(detail)) for detail in details]


def _field_error(detail: dict[str, Any]) -> FieldError:
    # An invalid variable name is at ("env", name, "[key]"); the name itself may be "[key]", too.
    loc = detail["loc"]
    path = loc[:2] if loc[2:] == ("[key]",) else loc
    message = _message(detail)
    if path[:1] == ("mounts",) and len(path) > 2:  # reported for the mount as a whole
        return FieldError(f"mounts.{path[1]}", f"{_part(path[2])}: {message}")
    if detail["type"] == "other_field":
        return FieldError(detail["ctx"]["field"], message)
    return FieldError(".".join(_part(part) for part in path) or BODY, message)


def _part(part: object) -> str:
    # Clients control these names and their length; names of variables may be long.
    text = str(part)
    return text if re.fullmatch(r"[A-Za-z0-9_]{1,128}", text) else clip(text)


def _message(detail: dict[str, Any]) -> str:
    kind, ctx = str(detail["type"]), detail.get("ctx", {})
    if kind == "value_error":
        return str(ctx["error"])
    if kind not in _LIBRARY:
        return str(detail["msg"])
    if kind.startswith(("datetime_", "date_", "timezone_")):
        return _TIME
    plain = {key: f"{part:g}" if isinstance(part, float) else part for key, part in ctx.items()}
    return _MESSAGES.get(kind, "this cannot be used").format(**plain)


def at_field(field: str, message: str) -> PydanticCustomError:
    """An error that belongs to a different field than the one being validated."""
    return PydanticCustomError("other_field", "{message}", {"field": field, "message": message})


WORD = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


WORD_RULE = (
    "use up to 64 letters, digits, dots, dashes and underscores, and begin with a letter or a digit"
)


Word = Annotated[str, Matching(WORD, WORD_RULE)]


LINK = r"((https?://|mailto:)[!-\[\]-~]+|/[!-.0-\[\]-~][!-\[\]-~]*)"
"""An address that pages link to. For browsers, "//" and "/\\" begin the name of a host."""


_RFC_3339 = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)


def read_moment(value: object) -> datetime:
    """Parse a timestamp of RFC 3339 to UTC; raises PydanticCustomError for anything else."""
    # Databases compare in UTC; not every valid timestamp can be converted.
    try:
        return _parse_rfc_3339(value).astimezone(UTC)
    except OverflowError:
        raise wrong("choose a time in the years 1 to 9999 (UTC)") from None


def _parse_rfc_3339(value: object) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    # The library's own parser also takes bare numbers, which the API's schema excludes.
    if isinstance(value, str) and re.fullmatch(_RFC_3339, value.upper(), re.ASCII):
        with suppress(ValueError):
            return datetime.fromisoformat(value.upper())
    raise wrong(_TIME)


Moment = Annotated[AwareDatetime, BeforeValidator(read_moment)]


# Inputs may be secrets: errors, which may be logged, must not contain them.
STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)


_CHECKED = ConfigDict(extra="forbid", frozen=True, strict=True, from_attributes=True)


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("use printable characters, in one line")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("this must not be empty")
    return text
