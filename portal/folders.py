"""Folders that outlive sessions: what a person could mount, and making a new one."""

from __future__ import annotations

from portal.core.access import Person
from portal.core.folders import HOME, Folder
from portal.core.ports import UserFiles
from portal.errors import FieldError, InvalidRequest


class Folders:
    """A person's home directory and storage folders, looked at as that person."""

    def __init__(self, files: UserFiles) -> None:
        self._files = files

    def list(self, person: Person) -> list[Folder]:
        """All that could be mounted, the home directory first. Raises Unavailable."""
        return [Folder(HOME, "~")]

    def make(self, person: Person, name: str) -> Folder:
        """A new storage folder. Raises InvalidRequest (field "folder"), Unavailable."""
        raise InvalidRequest([FieldError("folder", "folders cannot be made yet")])
