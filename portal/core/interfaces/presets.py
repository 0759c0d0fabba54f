"""TODO."""

from __future__ import annotations

from typing import Protocol

from portal.core.launch.presets import Preset, SaveResult


class PresetStore(Protocol):
    """The presets' table. Every method is one transaction."""

    def all(self, owner: str) -> list[Preset]:
        """A user's presets, by name, without the values of their variables."""
        ...

    def get(self, owner: str, name: str) -> Preset | None:
        """One preset; raises Unavailable when the key of its values is missing."""
        ...

    def save(self, owner: str, preset: Preset, replace: bool, most: int) -> SaveResult:
        """Keep it, unless its name is taken or there are `most` already; what became of it."""
        ...

    def rename(self, owner: str, name: str, to: str) -> SaveResult:
        """Give it another name, unless that one is taken; what became of it."""
        ...

    def remove(self, owner: str, name: str) -> bool:
        """Forget it; whether there was one."""
        ...
