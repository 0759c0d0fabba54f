"""What a web app is, and which image offers which: parsed from apps/ and images/."""

from __future__ import annotations

from typing import Annotated, Literal

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
    kind: Literal["web", "ssh"] = "web"
    """How people come to it: with a browser, or with an SSH client."""
    listen: Literal["unix", "tcp"] = "unix"
    """On the socket $SLIPWAY_SOCKET, or on 127.0.0.1:$PORT in a network namespace of its own."""
    detect: tuple[str, ...] = ()
    """Programs or absolute paths, one of which an image has that can run it; () is any image."""
    public: bool = False
    """Whether its owner may open it to everybody."""
    asks: str = ""
    """What its owner is asked for before it starts; the answer is in $SLIPWAY_ASKED."""
    background: tuple[str, ...] = ()
    """Beginnings of paths that an open window asks for by itself, which is no use of it."""
    noise: Annotated[int, Field(ge=0)] = 0
    """Bytes a minute that an open window sends over its WebSockets though nobody touches it."""
    busy: Annotated[str, Field(pattern=r"^(/[^\\]*)?$")] = ""
    """A path whose answer tells whether it works though nobody touches it; "" when none does."""
    busy_when: str = ""
    """A regular expression that is found in that answer while it works."""
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
