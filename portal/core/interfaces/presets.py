"""Interface to the store of presets."""

from __future__ import annotations

from typing import Protocol

from portal.core.launch.presets import Preset, SaveResult


class PresetStore(Protocol):
    """Presets by owner and name. Every method is one transaction."""

    def all(self, owner: str) -> list[Preset]:
        """A user's presets, by name, without the values of their variables."""
        ...

    def get(self, owner: str, name: str) -> Preset | None:
        """One preset; raises Unavailable if the key that encrypts its values is missing."""
        ...

    def save(self, owner: str, preset: Preset, replace: bool, most: int) -> SaveResult:
        """Save a preset, unless its name is taken or the owner already has `most`."""
        ...

    def rename(self, owner: str, name: str, to: str) -> SaveResult:
        """Rename a preset, unless the new name is taken."""
        ...

    def remove(self, owner: str, name: str) -> bool:
        """Delete a preset; returns whether there was one."""
        ...
