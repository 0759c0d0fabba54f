"""Folders that outlive a session: what may be mounted, and where it appears in the container."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from portal.core.validation import Matching, at_most

HOME = "home"
"""The name under which a person's whole home directory can be mounted."""
MAX_MOUNTS = 20

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
"""What a storage folder must be named like to be mounted: its name stands in a batch script."""

RULE = (
    "use up to 64 letters, digits, dots, dashes and underscores, and begin with a letter or a digit"
)
FolderName = Annotated[str, Matching(NAME, RULE)]


class Mount(BaseModel):
    """One folder of a session: a storage folder by its name, or "home"; seen at ~/<folder>."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    folder: FolderName
    read_only: bool = False

    @property
    def path(self) -> str:
        """Where the session sees it."""
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
    """A folder that somebody could mount."""

    name: str
    """"home", or the name of a storage folder."""
    path: str
    """Where it lies on the cluster's file system."""
    mountable: bool = True
    """False where its name cannot stand in a batch script, or is taken by the home directory."""


def storage_folder(name: str, directory: str) -> Folder:
    """A storage folder that was found in the directory of a person's storage folders."""
    mountable = name != HOME and re.fullmatch(NAME, name) is not None
    return Folder(name, f"{directory.rstrip('/')}/{name}", mountable)


@dataclass(frozen=True)
class MountPoint:
    """One mount as the batch script makes it."""

    name: str
    source: str
    """Absolute, or relative to the user's home directory."""
    read_only: bool


def storage_of(user: str, storage: str) -> str:
    """Where a user's storage folders lie, by the site's setting."""
    return storage.replace("{user}", user)


def mount_points(user: str, mounts: Iterable[Mount], storage: str) -> tuple[MountPoint, ...]:
    """What is mounted from where."""
    directory = storage_of(user, storage).rstrip("/")
    return tuple(
        MountPoint(
            mount.folder,
            "." if mount.folder == HOME else f"{directory}/{mount.folder}",
            mount.read_only,
        )
        for mount in mounts
    )
