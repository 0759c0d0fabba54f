"""A preset: a launch that somebody keeps under a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from portal.errors import FieldError, InvalidRequest

MAX_PRESETS = 100
"""Presets of one person."""

FIELD = "preset"
_RULE = (
    "use up to 60 letters, digits, spaces, dots, dashes and underscores; "
    "begin with a letter or a digit, and do not end with a space"
)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._-]{0,58}[A-Za-z0-9._-])?")


class SaveResult(Enum):
    """What became of the wish to keep a preset, or to rename it."""

    NEW = "new"
    REPLACED = "replaced"
    RENAMED = "renamed"
    TAKEN = "taken"
    """There is another one of this name."""
    FULL = "full"
    MISSING = "missing"


@dataclass(frozen=True)
class Preset:
    """One preset; `body` is a launch in the words of the REST API, values of variables and all."""

    name: str
    body: dict[str, Any]
    saved: datetime


def check_name(name: str) -> str:
    """The name, if a preset may have it. Raises InvalidRequest."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest([FieldError(FIELD, _RULE)])
    return name
