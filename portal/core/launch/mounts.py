"""Mounts of persistent folders: what can be mounted, and where it appears in the container."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from portal.core.validation import Matching, at_most
from portal.errors import FieldError

HOME = "home"
"""The mount name of a user's whole home directory."""
MAX_MOUNTS = 20

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""Pattern of mountable storage folders: the name becomes part of a batch script."""

RULE = (
    "use up to 64 letters, digits, dots, dashes and underscores, and begin with a letter or a digit"
)
FolderName = Annotated[str, Matching(NAME, RULE)]


class Mount(BaseModel):
    """One folder of a session: a storage folder by name, or "home"; mounted at ~/<folder>."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    folder: FolderName
    read_only: bool = False

    @property
    def path(self) -> str:
        """Its path in the session."""
        return f"~/{self.folder}"


def _short(value: Any) -> Any:
    return {"folder": value} if isinstance(value, str) else value


_NAME_JSON = {
    "type": "string",
    "description": "a storage folder's name, or home",
    "pattern": f"^{NAME}$",
}
Mounts = Annotated[
    tuple[
        Annotated[
            Mount,
            BeforeValidator(_short),
            WithJsonSchema(
                {
                    "anyOf": [
                        _NAME_JSON,
                        {
                            "type": "object",
                            "properties": {
                                "folder": _NAME_JSON,
                                "read_only": {"type": "boolean"},
                            },
                            "required": ["folder"],
                            "additionalProperties": False,
                        },
                    ]
                }
            ),
        ],
        ...,
    ],
    Field(strict=False),
    at_most(MAX_MOUNTS),
]


@dataclass(frozen=True)
class Folder:
    """A folder that a user could mount."""

    name: str
    """"home", or the name of a storage folder."""
    path: str
    """Its path on the cluster's file system."""
    mountable: bool = True
    """False if its name is not safe in a batch script, or is that of the home directory."""


def storage_folder(name: str, directory: str) -> Folder:
    """A storage folder found in the user's storage directory."""
    mountable = name != HOME and re.fullmatch(NAME, name) is not None
    return Folder(name, f"{directory.rstrip('/')}/{name}", mountable)


@dataclass(frozen=True)
class MountPoint:
    """One mount, as the batch script creates it."""

    name: str
    source: str
    """Absolute, or relative to the user's home directory."""
    read_only: bool


def storage_of(user: str, storage: str) -> str:
    """The directory of a user's storage folders, from the site's setting."""
    return storage.replace("{user}", user)


def start_folder(mounts: Iterable[Mount], owns_home: str | None = None) -> str:
    """Where apps and shells start: the only writable mount, relative to the home or absolute.

    "" stands for the home itself: without a writable mount, or with several. `owns_home`: the path
    of the storage folders (storage_of) if the home is the owner's own, else None.
    """
    writable = [mount.folder for mount in mounts if not mount.read_only]
    if len(writable) != 1 or (owns_home is not None and writable[0] == HOME):
        return ""
    return writable[0] if owns_home is None else _in_storage(writable[0], owns_home)


def place_in_own_home(folder: str, storage: str) -> str:
    """A folder's path in a session whose home is the owner's own: the same as on the cluster.

    `storage`: the path of the storage folders (storage_of).
    """
    path = _in_storage(folder, storage)
    if folder == HOME:
        return "~"
    return path if path.startswith("/") else f"~/{path}"


def check_in_own_home(mounts: Iterable[Mount]) -> list[FieldError]:
    """The mounts that are not possible where sessions run in their owner's own home."""
    return [
        FieldError(
            f"mounts.{place}", "your home directory is your session's: it is never read-only"
        )
        for place, mount in enumerate(mounts)
        if mount.folder == HOME and mount.read_only
    ]


def _in_storage(folder: str, storage: str) -> str:
    return f"{storage.rstrip('/')}/{folder}"


def mount_points(user: str, mounts: Iterable[Mount], storage: str) -> tuple[MountPoint, ...]:
    """The mounts with their source paths."""
    directory = storage_of(user, storage)
    return tuple(
        MountPoint(
            mount.folder,
            "." if mount.folder == HOME else _in_storage(mount.folder, directory),
            mount.read_only,
        )
        for mount in mounts
    )
