"""Messages for invalid settings, with keys and values as in the TOML file."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

_WORDS = {
    "missing": "is missing",
    "string_type": 'must be a text in quotes, as "text"',
    "bool_type": "must be true or false, without quotes",
    "bool_parsing": "must be true or false, without quotes",
    "model_type": "must be a section, [{key}]",
    "dict_type": 'must be a table, as {{ name = "value" }}',
}
_NUMBERS = ("int_", "float_")
_LISTS = ("tuple_type", "list_type", "frozen_set_type", "set_type")
PAIR = "must be two numbers, first and last, as [20000, 20039]"
LIST = 'must be a list, as ["one", "two"]'


def problems(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """One line for each wrong setting."""
    return list(dict.fromkeys(_line(dict(e), model) for e in error.errors()))


def _line(error: Mapping[str, Any], model: type[BaseModel]) -> str:
    loc: Sequence[str | int] = error["loc"]
    kind: str = error["type"]
    path = _setting_path(loc, model)
    field = _annotation(path, model)
    pair = field is not None and _is_pair(field)
    if pair and (kind in (*_LISTS, "missing", "too_long") or kind.startswith(_NUMBERS)):
        return f"{'.'.join(path)}: {PAIR}"
    key = ".".join(map(str, loc))
    if kind == "extra_forbidden":
        return f"{key}: there is no such setting{_advice([str(part) for part in loc], model)}"
    if kind in _LISTS:
        return f"{key}: {LIST}"
    if kind.startswith(_NUMBERS):
        return f"{key}: must be a {'whole ' if kind[0] == 'i' else ''}number, without quotes"
    text = _WORDS[kind].format(key=key) if kind in _WORDS else _plain(error["msg"])
    return f"{key}: {text}"


def _plain(message: str) -> str:
    return message.removeprefix("Value error, ").removeprefix("Input ")


def _setting_path(loc: Sequence[str | int], model: type[BaseModel]) -> list[str]:
    """The part of an error's location that names settings, without indices and union members."""
    path: list[str] = []
    inner: type[BaseModel] | None = model
    for part in loc:
        if inner is None or part not in inner.model_fields:
            break
        path.append(str(part))
        inner = _model_in(inner.model_fields[str(part)].annotation)
    return path


def _annotation(path: Sequence[str], model: type[BaseModel]) -> Any:
    inner: type[BaseModel] | None = model
    annotation: Any = None
    for part in path:
        if inner is None:
            return None
        annotation = inner.model_fields[part].annotation
        inner = _model_in(annotation)
    return annotation


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next(filter(None, map(_model_in, get_args(annotation))), None)


def _is_pair(annotation: Any) -> bool:
    return get_args(annotation) == (int, int) or any(map(_is_pair, get_args(annotation)))


def _advice(loc: Sequence[str], model: type[BaseModel]) -> str:
    """Suggest a similar name in this section, or the same name in another section."""
    *path, name = loc
    section = _model_of([part for part in path if not part.isdecimal()], model)
    if section is None:
        return ""
    close = difflib.get_close_matches(name, list(section.model_fields), 1, 0.6)
    if close:
        return f"; did you mean {close[0]}?"
    elsewhere = [key for key in _all(model) if key.rpartition(".")[2] == name]
    return f"; did you mean {' or '.join(elsewhere)}?" if elsewhere else ""


def _model_of(path: Sequence[str], model: type[BaseModel]) -> type[BaseModel] | None:
    inner: type[BaseModel] | None = model
    for part in path:
        if inner is None or part not in inner.model_fields:
            return None
        inner = _model_in(inner.model_fields[part].annotation)
    return inner


def _all(model: type[BaseModel]) -> Iterator[str]:
    """Every setting with its section."""
    for section, field in model.model_fields.items():
        inner = _model_in(field.annotation)
        for name in inner.model_fields if inner else ():
            yield f"{section}.{name}"
