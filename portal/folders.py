"""Folders that outlive sessions: what a person could mount, and making a new one."""

from __future__ import annotations

import re

from portal.core.access import Person
from portal.core.folders import HOME, NAME, Folder
from portal.core.ports import UserFiles
from portal.errors import FieldError, InvalidRequest


class Folders:
    """A person's home directory and storage folders, looked at as that person."""

    def __init__(self, files: UserFiles) -> None:
        self._files = files

    def list(self, person: Person) -> list[Folder]:
        """All that could be mounted, the home directory first. Raises Unavailable."""
        return self._files.folders(person.name)

    def make(self, person: Person, name: str) -> Folder:
        """Make a storage folder; raises InvalidRequest for the field "folder", or Unavailable."""
        if problem := _problem(name):
            raise InvalidRequest([FieldError("folder", problem)])
        return self._files.make_folder(person.name, name)


def _problem(name: str) -> str:
    if name == HOME:
        return f'"{HOME}" stands for your home directory; choose another name'
    if not re.fullmatch(NAME, name):
        return (
            "use up to 64 letters, digits, dots, dashes and underscores, "
            "and begin with a letter or a digit"
        )
    return ""
