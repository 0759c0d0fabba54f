"""A preset: a launch that somebody keeps under a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.errors import FieldError, InvalidRequest

MAX_PRESETS = 100
"""Presets of one person."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._-]{0,58}[A-Za-z0-9._-])?")


@dataclass(frozen=True)
class Preset:
    """One preset; `body` is a launch in the words of the REST API, values of variables and all."""

    name: str
    body: dict[str, Any]
    saved: datetime


def check_name(name: str) -> str:
    """The name, if a preset may have it. Raises InvalidRequest."""
    if not _NAME.fullmatch(name):
        text = "use up to 60 letters, digits, spaces, dots, dashes and underscores"
        raise InvalidRequest([FieldError("preset", text)])
    return name
