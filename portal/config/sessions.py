"""[sessions]: images, apps, homes and runners of sessions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, field_validator

from portal.config.base import FROZEN, AnyPorts, Below

BUNDLED = Path(__file__).parent.parent / "data"
"""Templates and apps of this version: portal/data, which has links to the folders in a checkout."""

_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
Dotfile = Annotated[str, Field(pattern=rf"^\.{_PART}(/{_PART})*$")]


class SessionSettings(BaseModel):
    """Images, apps, homes and runners of sessions."""

    model_config = FROZEN

    images: str = Field("/srv/slipway/images", description="Folder of <env>/<version>/image.sif.")
    apps: str = Field(
        str(BUNDLED / "apps"),
        description="Folder of <name>/app.toml; the default holds the apps that come with Slipway.",
    )
    site_apps: str = Field(
        "",
        description="Folder of the site's own apps, besides those in `apps`; one of the same name "
        "replaces it. Empty: none.",
    )
    templates: str = Field(
        str(BUNDLED / "templates"),
        description="Folder of templates for pages, jobs, HAProxy and systemd; the default holds "
        "those that come with Slipway.",
    )
    toolkit: str = Field(
        "/srv/slipway/toolkit.sqsh", description="The toolkit; the same path on portal and nodes."
    )
    directory: Annotated[str, Below] = Field(
        ".slipway",
        pattern=r"^[A-Za-z0-9._@%+=-][A-Za-z0-9._/@%+=-]*$",
        description="Folder in users' homes for scratch files and logs.",
    )
    storage: Annotated[str, Below] = Field(
        "storage",
        pattern=r"^(\{user\}|[A-Za-z0-9._/@%+=-])+$",
        description="Folder that holds a user's storage folders: relative to the home, or absolute "
        "with {user}.",
    )
    home: Literal["session", "persistent"] = Field(
        "session",
        description='The home directory of new sessions. "session": a new one, deleted at the end; '
        'folders are mounted in it. "persistent": the user\'s own on the cluster, at its own path.',
    )
    dotfiles: tuple[Dotfile, ...] = Field(
        (
            ".tmux.conf",
            ".config/tmux/tmux.conf",
            ".inputrc",
            ".vimrc",
            ".nanorc",
            ".gitconfig",
        ),
        description="Files of a user's home that are copied into new homes of sessions; none with "
        "secrets.",
    )
    callback: str = Field(
        "https://portal:8443",
        description="Address for callbacks of sessions' runners: https://host or https://host:port.",
    )
    callback_minutes: int = Field(
        5,
        ge=1,
        le=10,
        description="Minutes in which a session's runner must reach the portal for the first time; "
        "then the session ends, and its job with it.",
    )
    gateway_ports: AnyPorts = Field(
        (0, 0), description="First and last port of gateways on nodes; 0: any free port."
    )
    variables_days: int = Field(
        30, ge=0, description="Days that values of a session's variables are kept after its end."
    )
    usage_days: int = Field(
        90, ge=0, description="Days that a session's use over time is kept after its end."
    )
    heartbeat_seconds: int = Field(
        10,
        ge=1,
        description="Seconds between two usage reports of a session; 30, if that is longer, while "
        "its owner looks at no page of the portal and nothing is awaited.",
    )

    @field_validator("callback")
    @classmethod
    def _is_https(cls, url: str) -> str:
        if not re.fullmatch(r"https://([A-Za-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?/?", url):
            raise ValueError(f'must be "https://host" or "https://host:port", not "{url}"')
        return url

    @property
    def app_folders(self) -> tuple[str, ...]:
        """Folders of apps; a later one replaces apps of earlier ones by name."""
        return (self.apps, self.site_apps) if self.site_apps else (self.apps,)
