"""[images]: users' own images, in sessions and batch jobs."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator

from portal.config.base import FROZEN, Below
from portal.core.launch.own_image import Own, OwnImageRules

Folder = Annotated[str, Field(pattern=r"^(/[A-Za-z0-9._@%+=-]+)+$"), Below]
Host = Annotated[str, Field(pattern=r"^(\*|[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?)$")]


class ImageSettings(BaseModel):
    """Users' own images."""

    model_config = FROZEN

    own: Own = Field(
        "off",
        description='What users may bring. "files": a .sif in a storage folder. "registries": also '
        'an address such as docker://HOST/NAME:TAG. "off": nothing.',
    )
    folders: tuple[Folder, ...] = Field(
        (),
        description="Folders with images for everybody, besides the users' storage folders; none "
        "that overlaps sessions.images.",
    )
    registries: tuple[Host, ...] = Field(
        (), description='Hosts of registries, with their ports; "*": every one.'
    )
    insecure: tuple[Host, ...] = Field(
        (), description="Those of them that are asked by http, without TLS; passwords too."
    )
    max_gb: int = Field(20, ge=1, le=1024, description="GiB that one own image may have.")
    cache_gb: int = Field(
        40, ge=1, le=65536, description="GiB of pulled images that are kept in a user's home."
    )
    start_seconds: int = Field(
        120, ge=5, le=600, description="Seconds that an own image's start-up may take."
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.own == "registries" and not self.registries:
            raise ValueError('own = "registries" needs registries = ["HOST", …]')
        if "*" in self.insecure:
            raise ValueError("name each host in insecure")
        return self

    def rules(self, command: str) -> OwnImageRules:
        """The rules for launches; `command`: path of `slipway` on compute nodes."""
        return OwnImageRules(
            own=self.own,
            folders=self.folders,
            registries=self.registries,
            insecure=self.insecure,
            max_mb=self.max_gb << 10,
            cache_mb=self.cache_gb << 10,
            start_seconds=self.start_seconds,
            command=command,
        )
