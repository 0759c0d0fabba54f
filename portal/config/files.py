"""[files]: users' visible folders, and the file servers that run as the users."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from portal.config.base import FROZEN, AnyPorts, Below

RootName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
RootPath = Annotated[str, Field(pattern=r"^(/(\{user\}|[A-Za-z0-9._@%+=-])+)+$"), Below]
RESERVED = frozenset({"home", "storage", "shared"})


class FileSettings(BaseModel):
    """Users' files, shown by a file server that runs as the user on login.files_host."""

    model_config = FROZEN

    roots: dict[RootName, RootPath] = Field(
        {},
        description='Further folders that people see, such as scratch = "/scratch/{user}"; their '
        "home directory and their storage folders always are.",
    )
    quota: dict[str, str] = Field(
        {},
        description='How the quota of a folder is asked, by its name ("home", "storage", or one of '
        '`roots`): "df", "quota", "lfs", or a command that prints used and limit in bytes; '
        '"none" shows none. Others: "df".',
    )
    ports: AnyPorts = Field(
        (0, 0), description="First and last port of file servers; 0: any free port."
    )
    idle_minutes: int = Field(
        15, ge=1, le=1440, description="Minutes without use after which a file server ends."
    )
    upload_hours: int = Field(
        48, ge=1, le=24 * 30, description="Hours that an upload that was cut can be continued."
    )
    check_names: bool = Field(
        False,
        description="Whether Share says that there is no user or group of a name. Otherwise "
        "nobody is told who has an account.",
    )
