"""Folders that outlive sessions: what a person could mount, and making a new one."""

from __future__ import annotations

from portal.core.access import Person
from portal.core.folders import HOME, Folder
from portal.core.ports import UserFiles


class Folders:
    """A person's home directory and storage folders, looked at as that person."""

    def __init__(self, files: UserFiles) -> None:
        self._files = files

    def list(self, person: Person) -> list[Folder]:
        """All that could be mounted, the home directory first. Raises Unavailable."""
        return [Folder(HOME, "~")]

    def make(self, person: Person, name: str) -> Folder:
        """Make a storage folder; raises InvalidRequest for the field "folder", or Unavailable."""
        raise NotImplementedError
