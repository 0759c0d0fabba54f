"""Users and groups that a folder is shared with."""

from __future__ import annotations

import grp
import os
import pwd
from dataclasses import dataclass

from portal.node.file_server.errors import Refused

USER, GROUP = "user", "group"
READ, WRITE = "read", "write"
LONGEST_NAME = 255


@dataclass(frozen=True)
class Subject:
    """A user or group by name."""

    kind: str
    name: str

    @property
    def words(self) -> str:
        """The user or group in a sentence."""
        return f"the group {self.name}" if self.kind == GROUP else self.name

    @property
    def number(self) -> int | None:
        """UID or GID; None if there is none of this name."""
        try:
            if self.kind == USER:
                return pwd.getpwnam(self.name).pw_uid
            return grp.getgrnam(self.name).gr_gid
        except KeyError:
            return None

    @property
    def listed_number(self) -> int | None:
        """UID or GID of an entry in a list, whose name is the number if the account was deleted."""
        is_number = self.name.isascii() and self.name.isdigit() and len(self.name) < 11
        return int(self.name) if self.number is None and is_number else self.number


@dataclass(frozen=True)
class Share:
    """The access of a subject to a folder."""

    subject: Subject
    access: str

    def as_json(self) -> dict[str, str]:
        """The share in replies."""
        return {"kind": self.subject.kind, "name": self.subject.name, "access": self.access}


def read_subject(kind: object, name: object) -> Subject:
    """Validate a subject of a request, but not whether it exists; raises Refused."""
    if kind not in (USER, GROUP):
        raise Refused(422, "value", "Choose user or group.", "kind")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise Refused(422, "value", f"Write a name of up to {LONGEST_NAME} characters.", "name")
    if not name.isprintable() or set(name) & set("/:, "):
        raise Refused(422, "value", "This cannot be the name of a user or group.", "name")
    if kind == USER and name == user_name(os.geteuid()):
        raise Refused(422, "value", "This is you: the folder is yours.", "name")
    return Subject(str(kind), name)


def read_access(access: object) -> str:
    """Validate the access of a request; raises Refused."""
    if access not in (READ, WRITE):
        raise Refused(422, "value", "Choose read or write.", "access")
    return str(access)


def user_name(number: int) -> str:
    """A user's name; the number itself if there is none."""
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def group_name(number: int) -> str:
    """A group's name; the number itself if there is none."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
