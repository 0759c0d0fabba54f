"""An annotated settings file, generated from descriptions and defaults."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from portal.config.sessions import BUNDLED
from portal.config.settings import Settings

WIDTH = 100
HEAD = """\
# Settings of Slipway: every key with its description and its default. A line such as "#key = value"
# takes effect without its "#". Lines that end with "# required" or "# not set" have no default.
"""


def annotated() -> str:
    """The text of a settings file; loading it unchanged gives the defaults."""
    sections = [_section(name, field) for name, field in Settings.model_fields.items()]
    return "\n".join([HEAD, *sections])


def _section(name: str, field: FieldInfo) -> str:
    lines = [*_comment(field.description), f"[{name}]", *_keys(_model_of(field), name)]
    return "\n".join(lines) + "\n"


def _model_of(field: FieldInfo) -> type[BaseModel]:
    if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
        return field.annotation
    raise TypeError(f"{field.annotation} is not a section")


def _keys(model: type[BaseModel], section: str) -> Iterator[str]:
    tables: list[tuple[str, FieldInfo, type[BaseModel]]] = []
    for name, field in model.model_fields.items():
        if inner := _tables_of(field):
            tables.append((name, field, inner))
            continue
        yield ""
        yield from _comment(field.description, _choices(field))
        yield f"#{name} = {_default(field)}"
    for name, field, inner in tables:  # in TOML they come after the keys of their section
        yield ""
        yield from _comment(field.description, "One block for each:")
        yield f"#[[{section}.{name}]]"
        yield from _keys(inner, f"{section}.{name}")


def _tables_of(field: FieldInfo) -> type[BaseModel] | None:
    """The model of an array of tables."""
    for inner in get_args(field.annotation):
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return inner
    return None


def _choices(field: FieldInfo) -> str:
    if get_origin(field.annotation) is not Literal:
        return ""
    return f"One of {', '.join(map(_value, get_args(field.annotation)))}."


def _comment(*sentences: str | None) -> list[str]:
    text = " ".join(sentence for sentence in sentences if sentence)
    return [f"# {line}" for line in textwrap.wrap(text, WIDTH - 2)]


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "  # required"
    value = field.default
    bundled = isinstance(value, str) and Path(value).is_relative_to(BUNDLED)
    return "  # not set" if value is None or bundled else _value(value)


def _value(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Fraction):
        exact = Fraction(str(float(value))) == value
        return f"{float(value):g}" if exact else f'"{value}"'
    return json.dumps(value)  # strings, numbers and truth values are written as in JSON
