"""Persistent folders: lists those that a user can mount, and creates new ones."""

from __future__ import annotations

import re
from collections.abc import Callable

from portal.core.auth.person import Person
from portal.core.interfaces.systems import UserFiles
from portal.core.launch.mounts import HOME, NAME, RULE, Folder
from portal.errors import FieldError, InvalidRequest


class Storage:
    """A user's home directory and storage folders, accessed as that user."""

    def __init__(self, files: UserFiles, record: Callable[[str, str, str], None]) -> None:
        self._files = files
        self._record = record

    def list(self, person: Person) -> list[Folder]:
        """All folders that could be mounted, the home directory first; raises Unavailable."""
        return self._files.folders(person.name)

    def make(self, person: Person, name: str) -> Folder:
        """Create a storage folder; raises InvalidRequest for the field "folder", Conflict
        if none of the storage can be used, or Unavailable.
        """
        if problem := _problem(name):
            raise InvalidRequest([FieldError("folder", problem)])
        made = self._files.make_folder(person.name, name)
        self._record(person.name, "folder.make", name)
        return made


def _problem(name: str) -> str:
    if name == HOME:
        return f'"{HOME}" stands for your home directory; choose another name'
    return "" if re.fullmatch(NAME, name) else RULE
