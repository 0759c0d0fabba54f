"""Folders that outlive a session: what may be mounted, and where it appears in the container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

HOME = "home"
"""The name under which a person's whole home directory can be mounted."""
MAX_MOUNTS = 20

FolderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]


class Mount(BaseModel):
    """One folder of a session: a storage folder by its name, or "home"; seen at ~/<folder>."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    folder: FolderName
    read_only: bool = False


def _short(value: Any) -> Any:
    return {"folder": value} if isinstance(value, str) else value


Mounts = Annotated[
    tuple[
        Annotated[
            Mount,
            BeforeValidator(_short),
            WithJsonSchema(
                {
                    "anyOf": [
                        {"type": "string", "description": "a folder's name, or home"},
                        {
                            "type": "object",
                            "properties": {
                                "folder": {"type": "string"},
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
    Field(max_length=MAX_MOUNTS, strict=False),
]


@dataclass(frozen=True)
class Folder:
    """A folder that somebody could mount."""

    name: str
    """"home", or the name of a storage folder."""
    path: str
    """Where it lies on the cluster's file system."""
    mountable: bool = True
    """False where its name has characters that a batch script must not carry."""
