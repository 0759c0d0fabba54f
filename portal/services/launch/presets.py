"""Presets: launches that a person keeps under a name, every field of them."""

from __future__ import annotations

from portal.core.auth.person import Person
from portal.core.interfaces.presets import PresetStore
from portal.core.interfaces.systems import Clock
from portal.core.launch.presets import FIELD, MAX_PRESETS, Preset, SaveResult, check_name
from portal.core.launch.request import LaunchRequest
from portal.core.session.relaunch import to_request_body
from portal.errors import Conflict, FieldError, InvalidRequest, NotFound

_NONE = "You have no preset of this name."


class Presets:
    """A person's presets; nobody else sees them, administrators included."""

    def __init__(self, store: PresetStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def list(self, person: Person) -> list[Preset]:
        """All of one's own, by name."""
        return self._store.all(person.name)

    def get(self, person: Person, name: str) -> Preset:
        """One of one's own; raises NotFound."""
        found = self._store.get(person.name, name)
        if found is None:
            raise NotFound(_NONE)
        return found

    def save(
        self, person: Person, name: str, request: LaunchRequest, replace: bool = True
    ) -> tuple[Preset, bool]:
        """Keep a request under a name; what is kept, and whether the name is new.

        Raises InvalidRequest, and Conflict where one of this name is not to be replaced.
        """
        preset = Preset(check_name(name), to_request_body(request), self._clock())
        kept = self._store.save(person.name, preset, replace, MAX_PRESETS)
        if kept is SaveResult.FULL:
            text = f"you have {MAX_PRESETS} presets already; delete one first"
            raise InvalidRequest([FieldError(FIELD, text)])
        if kept is SaveResult.TAKEN:
            raise Conflict(f"You have a preset named {name} already.")
        return preset, kept is SaveResult.NEW

    def rename(self, person: Person, name: str, to: str) -> None:
        """Give a preset another name. Raises NotFound, InvalidRequest, Conflict."""
        check_name(to)
        kept = self._store.rename(person.name, name, to)
        if kept is SaveResult.MISSING:
            raise NotFound(_NONE)
        if kept is SaveResult.TAKEN:
            raise Conflict(f"You have a preset named {to} already.")

    def remove(self, person: Person, name: str) -> None:
        """Forget a preset; raises NotFound."""
        if not self._store.remove(person.name, name):
            raise NotFound(_NONE)
