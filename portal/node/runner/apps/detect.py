"""Detects the apps that this image can run, by the programs that it contains."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def detect(probes: Mapping[str, Sequence[str]], path: str | None = None) -> list[str]:
    """The apps with at least one program present; apps without programs run in every image."""
    folders = (os.environ.get("PATH", os.defpath) if path is None else path).split(":")
    return [
        app
        for app, programs in probes.items()
        if not programs or any(_exists(program, folders) for program in programs)
    ]


def _exists(program: str, folders: Sequence[str]) -> bool:
    if program.startswith("/"):
        return os.path.exists(program)
    return any(
        os.path.isfile(f"{folder}/{program}") and os.access(f"{folder}/{program}", os.X_OK)
        for folder in folders
        if folder.startswith("/")
    )
