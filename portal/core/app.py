"""What a web app is, and which image offers which: parsed from apps/ and images/."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from portal.core.launch import field_errors

AppName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]


class AppSpec(BaseModel):
    """One web app, as apps/<name>/app.toml describes it; the timeout in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: AppName
    title: str
    icon: str = "box"
    description: str = ""
    path: Annotated[str, Field(pattern=r"^/[^\\]*$")] = "/"
    ready: Annotated[str, Field(pattern=r"^/[^\\]*$")] = "/"
    timeout: Annotated[int, Field(ge=1, le=3600)] = 60
    shares: AppName | None = None
    """The app whose server this one is another entry to (Notebook and JupyterLab)."""
    script: str = ""
    """The text of start.sh; empty when the app shares another's server."""

    @property
    def server(self) -> str:
        """Name of the app whose process answers for this one."""
        return self.shares or self.name


class Image(BaseModel):
    """One version of one environment, as images/<env>/<version>/image.toml describes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    environment: str
    version: str
    path: str
    """The SIF file, as the compute nodes see it."""
    title: str
    description: str = ""
    apps: tuple[AppName, ...]
    default_app: AppName | None = None
    default: bool = False
    """Whether a new launch form proposes this one."""


def describe_problem(error: ValidationError) -> str:
    """One line for the administrator who wrote the file."""
    return "; ".join(f"{e.field}: {e.message}" for e in field_errors(error))


class Catalog(BaseModel):
    """All apps and images of a site."""

    model_config = ConfigDict(frozen=True)

    apps: dict[str, AppSpec]
    images: tuple[Image, ...]

    def image(self, environment: str, version: str | None) -> Image | None:
        """The named image; without a version the newest by name."""
        return next(
            (
                image
                for image in self.images
                if image.environment == environment and version in (None, image.version)
            ),
            None,
        )

    @property
    def proposed(self) -> Image | None:
        """What a new launch form proposes: the image marked as default, else the first."""
        first = self.images[0] if self.images else None
        return next((image for image in self.images if image.default), first)

    def apps_of(self, environment: str, version: str) -> list[AppSpec]:
        """The apps that an image offers, in its own order."""
        image = self.image(environment, version)
        return [self.apps[name] for name in image.apps if name in self.apps] if image else []
