"""Presets: launch requests that users save under a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from portal.core.launch.names import is_generated, name_from
from portal.errors import Conflict, FieldError, InvalidRequest, NotFound

MAX_PRESETS = 100
"""Presets per user."""

FIELD = "preset"
_RULE = (
    "use up to 60 letters, digits, spaces, dots, dashes and underscores; "
    "begin with a letter or a digit, and do not end with a space"
)
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9 ._-]{0,58}[A-Za-z0-9._-])?")


class SaveResult(Enum):
    """The outcome of saving or renaming a preset."""

    NEW = "new"
    REPLACED = "replaced"
    RENAMED = "renamed"
    TAKEN = "taken"
    """Another preset has this name."""
    FULL = "full"
    MISSING = "missing"


@dataclass(frozen=True)
class Preset:
    """One preset; `body` is a launch request of the REST API, including values of variables."""

    name: str
    body: dict[str, Any]
    saved: datetime

    @property
    def to_launch(self) -> dict[str, Any]:
        """The launch request with a name: the saved one, else one derived from the preset's name.

        Presets of earlier versions may contain a generated name, which is not used again.
        """
        saved = self.body.get("name")
        name = name_from(self.name) if saved is None or is_generated(saved) else saved
        fields = {key: value for key, value in self.body.items() if key != "name"}
        return fields | ({"name": name} if name else {})


def check_name(name: str, field: str = FIELD) -> str:
    """Return the name if it is valid for a preset or job template; raises InvalidRequest."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest([FieldError(field, _RULE)])
    return name


def check_saved(result: SaveResult, kind: str, name: str, most: int, field: str = FIELD) -> None:
    """Raise the error of a failed save, rename or deletion; `kind`: for example "preset"."""
    if result is SaveResult.FULL:
        text = f"you have {most} {kind}s already; delete one first"
        raise InvalidRequest([FieldError(field, text)])
    if result is SaveResult.TAKEN:
        raise Conflict(f"You have a {kind} named {name} already.")
    if result is SaveResult.MISSING:
        raise NotFound(f"You have no {kind} of this name.")
