"""Presets: complete launch requests that users save under a name."""

from __future__ import annotations

from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock
from portal.core.launch.presets import (
    MAX_PRESETS,
    Preset,
    SaveResult,
    check_name,
    check_saved,
)
from portal.core.launch.request import LaunchRequest
from portal.core.session.relaunch import to_request_body
from portal.errors import NotFound
from portal.store.presets import PresetStore

_NO_PRESET = "You have no preset of this name."


class Presets:
    """A user's presets, visible to that user only, not to administrators."""

    def __init__(self, store: PresetStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def list(self, person: Person) -> list[Preset]:
        """All of the user's presets, by name."""
        return self._store.all(person.name)

    def get(self, person: Person, name: str) -> Preset:
        """One of the user's presets; raises NotFound."""
        preset = self._store.get(person.name, name)
        if preset is None:
            raise NotFound(_NO_PRESET)
        return preset

    def save(
        self, person: Person, name: str, request: LaunchRequest, replace: bool = True
    ) -> tuple[Preset, bool]:
        """Save a request under a name; returns the preset, and whether the name is new.

        Raises InvalidRequest, and Conflict if the name is taken and `replace` is False.
        """
        preset = Preset(check_name(name), to_request_body(request), self._clock())
        saved = self._store.save(person.name, preset, replace, MAX_PRESETS)
        check_saved(saved, "preset", name, MAX_PRESETS)
        return preset, saved is SaveResult.NEW

    def rename(self, person: Person, name: str, to: str) -> None:
        """Rename a preset; raises NotFound, InvalidRequest, Conflict."""
        check_name(to)
        check_saved(self._store.rename(person.name, name, to), "preset", to, MAX_PRESETS)

    def remove(self, person: Person, name: str) -> None:
        """Delete a preset; raises NotFound."""
        if not self._store.remove(person.name, name):
            raise NotFound(_NO_PRESET)
