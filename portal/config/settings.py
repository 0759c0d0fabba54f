"""All sections of the settings, and loading them from a file."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from portal.config.base import FROZEN
from portal.config.batch import BatchSettings
from portal.config.cluster import LoginSettings, SlurmSettings
from portal.config.files import FileSettings
from portal.config.gpu import GpuSettings
from portal.config.hub import HubSettings
from portal.config.images import ImageSettings
from portal.config.log import LogSettings
from portal.config.mail import MailSettings
from portal.config.messages import problems
from portal.config.monitoring import MonitoringSettings
from portal.config.oidc import OidcSettings
from portal.config.sessions import SessionSettings
from portal.config.state import ServiceSettings, StateSettings
from portal.config.web import WebSettings

_ENVIRONMENT = {
    "SLIPWAY_PUBLIC_URL": ("web", "public_url"),
    "SLIPWAY_DATABASE": ("state", "database"),
    "SLIPWAY_APPS": ("web", "apps"),
    "SLIPWAY_APPS_PORTS": ("web", "apps_ports"),
    "SLIPWAY_SSH_PORTS": ("web", "ssh_ports"),
    "SLIPWAY_TLS_CERTIFICATE": ("web", "tls_certificate"),
    "SLIPWAY_SESSION_HOME": ("sessions", "home"),
    "SLIPWAY_HUB_PROXIES": ("hub", "proxies"),
    "SLIPWAY_HUB_URL": ("hub", "url"),
    "SLIPWAY_HUB_TLS_CERTIFICATE": ("hub", "tls_certificate"),
    "SLIPWAY_HUB_CLIENT_CA": ("hub", "client_ca"),
    "SLIPWAY_HUB_FRONT_END_TOKEN_FILE": ("hub", "front_end_token_file"),
    "SLIPWAY_SUPERVISOR": ("service", "supervisor"),
    "SLIPWAY_SUPERVISORCTL": ("service", "supervisorctl"),
    "SLIPWAY_HAPROXY_CONFIG": ("service", "haproxy_config"),
}
"""Environment variables that override settings, for values known only at a container's start."""
_LISTS: dict[str, Callable[[str], Any]] = {
    "apps_ports": lambda text: text.split("-"),
    "ssh_ports": lambda text: text.split("-"),
    "proxies": lambda text: text.split(),
}
"""Ranges are written as "10000-10039", lists with blanks."""


class Settings(BaseModel):
    """All settings."""

    model_config = FROZEN

    web: WebSettings = Field(WebSettings(), description="Addresses, logins and limits on requests.")
    login: LoginSettings = Field(LoginSettings(), description="The login node.")
    oidc: OidcSettings = Field(OidcSettings(), description="Log-in by OpenID Connect.")
    slurm: SlurmSettings = Field(SlurmSettings(), description="How Slurm is queried.")
    sessions: SessionSettings = Field(SessionSettings(), description="What runs inside a session.")
    images: ImageSettings = Field(ImageSettings(), description="Users' own images.")
    batch: BatchSettings = Field(BatchSettings(), description="Batch jobs in images.")
    files: FileSettings = Field(FileSettings(), description="Users' files in the portal.")
    gpu: GpuSettings = Field(
        GpuSettings(),
        description="GPUs, and how they are shared; none are offered unless named here.",
    )
    hub: HubSettings = Field(HubSettings(), description="JupyterHub in front of sessions.")
    mail: MailSettings = Field(MailSettings(), description="Messages to users by e-mail.")
    state: StateSettings = Field(StateSettings(), description="Where the portal keeps its data.")
    log: LogSettings = Field(LogSettings(), description="What the portal's processes log.")
    monitoring: MonitoringSettings = Field(
        MonitoringSettings(), description="Metrics and health, for programs that watch the portal."
    )
    service: ServiceSettings = Field(
        ServiceSettings(), description="How the portal's own processes are run."
    )


class SettingsError(Exception):
    """The settings file is missing or invalid; the text names the key."""


def settings_file(path: str | None = None) -> Path:
    """The TOML file: the argument, else SLIPWAY_CONFIG, else /etc/slipway/slipway.toml."""
    return Path(path or os.environ.get("SLIPWAY_CONFIG", "/etc/slipway/slipway.toml"))


def load_settings(path: str | None = None) -> Settings:
    """Read the TOML file.

    Environment variables override settings known only when a container starts, such as its ports.
    Raises SettingsError.
    """
    file = settings_file(path)
    try:
        data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: {error}") from error
    for variable, (section, name) in _ENVIRONMENT.items():
        if value := os.environ.get(variable):
            data.setdefault(section, {})[name] = _LISTS.get(name, str)(value)
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        raise SettingsError(f"{file}: " + "; ".join(problems(error, Settings))) from error
