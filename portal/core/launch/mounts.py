"""Mounts of persistent folders: their sources, and their paths in the container."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from portal.core.account_names import WIDEST as OWNER
from portal.core.validation import at_most, checked
from portal.errors import FieldError
from portal.node.common.folder_name import HOME, PATTERN, name_problem

MAX_MOUNTS = 20


def _mountable(text: str) -> str:
    """Check the source of a mount: a folder's name, home, or OWNER/FOLDER; raises ValueError."""
    owner, slash, name = text.rpartition("/")
    if slash and not re.fullmatch(OWNER, owner):
        raise ValueError("write the name of a storage folder, or OWNER/FOLDER")
    if text != HOME and (problem := name_problem(name)):
        raise ValueError(problem)
    return text


FolderName = Annotated[str, checked(_mountable)]


class Mount(BaseModel):
    """One folder of a session: a storage folder by name, "home", or another's as OWNER/FOLDER."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    folder: FolderName
    read_only: bool = False

    @property
    def owner(self) -> str:
        """The user who shares it; "" for the user's own."""
        return self.folder.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The folder's name, without its owner."""
        return self.folder.rpartition("/")[2]


def mount_name(mount: Mount, mounts: Iterable[Mount]) -> str:
    """A mount's name in a session's new home: the folder's; own folders take precedence."""
    if not mount.owner:
        return mount.folder
    names = [HOME, *(other.name for other in mounts if other.folder != mount.folder)]
    return f"{mount.owner}-{mount.name}" if mount.name in names else mount.name


def duplicate_mount_name(mounts: Sequence[Mount]) -> str:
    """A name in the home that two of a session's mounts would share; "" if none."""
    names = [mount_name(mount, mounts) for mount in mounts]
    return next((name for name in names if names.count(name) > 1), "")


def _short(value: Any) -> Any:
    return {"folder": value} if isinstance(value, str) else value


_NAME_JSON = {
    "type": "string",
    "description": "a storage folder's name, home, or OWNER/FOLDER for one that is shared with you",
    "pattern": f"^(?:{OWNER}/)?{PATTERN}$",
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
    problem: str = ""
    """Why it cannot be mounted."""
    owner: str = ""
    """The user who shares it; "" for the user's own."""
    read_only: bool = False
    """Whether it is shared read-only, so that it can only be mounted read-only."""

    @property
    def mountable(self) -> bool:
        """Whether a session can mount it."""
        return not self.problem


def storage_folder(name: str, directory: str) -> Folder:
    """Build the Folder for an entry of the user's storage directory."""
    return Folder(name, f"{directory.rstrip('/')}/{name}", name_problem(name))


@dataclass(frozen=True)
class MountPoint:
    """One mount, as the batch script creates it."""

    name: str
    source: str
    """Absolute, or relative to the home directory of the user, or of the owner."""
    read_only: bool
    owner: str = ""
    """The user who shares it; "" for the user's own."""


def storage_of(user: str, storage: str) -> str:
    """The directory of a user's storage folders, from the site's setting."""
    return storage.replace("{user}", user)


def start_folder(mounts: Iterable[Mount], owns_home: str | None = None) -> str:
    """Where apps and shells start: the only writable mount, relative to the home or absolute.

    "" stands for the home itself: without a writable mount, or with several. `owns_home`: the path
    of the storage folders (storage_of) if the home is the owner's own, else None.
    """
    listed = tuple(mounts)
    writable = [mount for mount in listed if not mount.read_only]
    if len(writable) != 1:
        return ""
    if owns_home is None:
        return mount_name(writable[0], listed)
    if writable[0].folder == HOME or writable[0].owner:
        return ""
    return _in_storage(writable[0].folder, owns_home)


def persistent_folders(mounts: Iterable[Mount], owns_home: str | None = None) -> list[str]:
    """The user's own writable mounts in their order, relative to the session's home or absolute.

    If the home is the owner's own, it comes last, as "". `owns_home`: as for start_folder.
    """
    listed = [mount for mount in mounts if not mount.read_only and not mount.owner]
    if owns_home is None:
        return [mount.folder for mount in listed]
    return [*(_in_storage(m.folder, owns_home) for m in listed if m.folder != HOME), ""]


def path_in_own_home(folder: str, storage: str) -> str:
    """A folder's path in a session whose home is the owner's own: the same as on the cluster.

    `storage`: the path of the storage folders (storage_of).
    """
    path = _in_storage(folder, storage)
    if folder == HOME:
        return "~"
    return path if path.startswith("/") else f"~/{path}"


def check_in_own_home(mounts: Iterable[Mount]) -> list[FieldError]:
    """Errors for mounts that are impossible if sessions run in their owner's home directory."""
    return [
        FieldError(
            f"mounts.{index}", "your home directory is your session's: it is never read-only"
        )
        for index, mount in enumerate(mounts)
        if mount.folder == HOME and mount.read_only
    ]


def _in_storage(folder: str, storage: str) -> str:
    return f"{storage.rstrip('/')}/{folder}"


def mount_points(user: str, mounts: Iterable[Mount], storage: str) -> tuple[MountPoint, ...]:
    """The mounts with their source paths."""
    listed = tuple(mounts)
    return tuple(
        MountPoint(
            mount_name(mount, listed),
            "."
            if mount.folder == HOME
            else _in_storage(mount.name, storage_of(mount.owner or user, storage)),
            mount.read_only,
            mount.owner,
        )
        for mount in listed
    )


def path_of_shared(owner: str, name: str, storage: str) -> str:
    """The path of another user's folder on the cluster; `storage`: the site's setting."""
    path = _in_storage(name, storage_of(owner, storage))
    return path if path.startswith("/") else f"~{owner}/{path}"
