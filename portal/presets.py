"""Presets: launches that a person keeps under a name, every field of them."""

from __future__ import annotations

from portal.core.ports import Clock, PresetStore


class Presets:
    """A person's presets; nobody else sees them, administrators included."""

    def __init__(self, store: PresetStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
