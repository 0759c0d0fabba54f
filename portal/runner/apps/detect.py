"""Which apps this image can run, seen by the programs that it has."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def detect(probes: Mapping[str, Sequence[str]], path: str | None = None) -> list[str]:
    """Name the apps of which a program is there; one without any probe runs in every image."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(":")
    return [
        app
        for app, programs in probes.items()
        if not programs or any(_there(program, folders) for program in programs)
    ]


def _there(program: str, folders: Sequence[str]) -> bool:
    if program.startswith("/"):
        return os.path.exists(program)
    return any(
        os.path.isfile(f"{folder}/{program}") and os.access(f"{folder}/{program}", os.X_OK)
        for folder in folders
        if folder.startswith("/")
    )
