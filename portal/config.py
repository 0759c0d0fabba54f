"""The settings of a site: one TOML file, read once, never changed while running."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from portal.core.origins import Mode, Origins, Range

FROZEN = ConfigDict(frozen=True, extra="forbid")


_PART = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
Dotfile = Annotated[str, Field(pattern=rf"^\.{_PART}(/{_PART})*$")]


class WebSettings(BaseModel):
    """Where people find the portal."""

    model_config = FROZEN

    public_url: str = Field("http://localhost:8080", description="Address that browsers use.")
    apps: Mode = Field(
        "subdomains",
        description="Apps' own origins: ports of a pool, or subdomains of apps_domain.",
    )
    apps_host: str = Field(
        "127.0.0.1",
        description="Host name of the pool's ports; not the portal's, as cookies ignore ports.",
    )
    apps_ports: Range = Field((10000, 10199), description="First and last port of the pool.")
    ssh_ports: Range = Field((10200, 10249), description="First and last port for SSH.")
    apps_domain: str = Field(
        "localhost",
        description="Domain whose subdomains are the apps' origins; must not contain the portal.",
    )
    listen: str = Field("0.0.0.0:8080", description="Where HAProxy takes browsers.")
    listen_runners: str = Field("0.0.0.0:8443", description="Where HAProxy takes call-backs.")
    tls_certificate: str = Field("", description="PEM (chain and key) for https; empty: http.")
    login_hours: int = Field(12, ge=1, description="How long a login lasts without being used.")
    logins_per_minute: int = Field(10, ge=1, description="Login attempts per address and minute.")

    @property
    def secure(self) -> bool:
        """Whether browsers reach us by https."""
        return urlsplit(self.public_url).scheme == "https"

    @property
    def host(self) -> str:
        """The portal's own host name."""
        return urlsplit(self.public_url).hostname or "localhost"

    @property
    def origins(self) -> Origins:
        """Where apps are found."""
        parts = urlsplit(self.public_url)
        return Origins(
            scheme=parts.scheme,
            mode=self.apps,
            host=self.apps_host if self.apps == "ports" else self.apps_domain,
            port=parts.port,
            ports=self.apps_ports,
            ssh_ports=self.ssh_ports,
        )

    def app_url(self, label: str) -> str:
        """Origin of the app with this label."""
        return self.origins.url(label)


class LoginSettings(BaseModel):
    """The login node: passwords are checked and commands run there."""

    model_config = FROZEN

    host: str = Field("login", description="Login node with sshd and Slurm's commands.")
    port: int = Field(22, description="Its SSH port.")
    known_hosts: str = Field("/etc/slipway/known_hosts", description="Its host key (OpenSSH form).")
    reader: str = Field("slipway", description="Unprivileged account that reads Slurm's state.")
    minimum_uid: int = Field(1000, description="Accounts below this number are refused.")
    certificate_minutes: int = Field(5, ge=1, description="Life of a user's SSH certificate.")
    source_address: str = Field("", description="Address in certificates; empty: found out.")


class SlurmSettings(BaseModel):
    """How Slurm is asked."""

    model_config = FROZEN

    poll_seconds: float = Field(2.0, gt=0, description="Time between two looks at the queue.")
    partitions_seconds: float = Field(30.0, gt=0, description="Time between two looks at nodes.")
    limits_seconds: float = Field(60.0, gt=0, description="Time between two looks at limits.")
    command_seconds: float = Field(20.0, gt=0, description="Time limit of one Slurm command.")
    admins: list[str] = Field([], description="Users who see and end everybody's sessions.")
    operator: str = Field(
        "", description="Account with AdminLevel=Operator that extends time; empty: nobody does."
    )
    extend_minutes: int = Field(60, ge=1, description="How much one extension gives.")


class SessionSettings(BaseModel):
    """What runs inside a session."""

    model_config = FROZEN

    images: str = Field("/srv/slipway/images", description="Folder of <env>/<version>/image.sif.")
    apps: str = Field("/usr/share/slipway/apps", description="Folder of <name>/app.toml.")
    templates: str = Field("/usr/share/slipway/templates", description="Folder of job templates.")
    toolkit: str = Field("/srv/slipway/toolkit.sqsh", description="The toolkit, on the nodes.")
    directory: str = Field(".slipway", description="Folder in users' homes for scratch and logs.")
    storage: str = Field(
        "storage",
        pattern=r"^(\{user\}|[A-Za-z0-9._/@%+=-])+$",
        description="Folder of a user's storage folders, in the home; or absolute with {user}.",
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
        description="Files of a user's home that each session gets copies of; none with secrets.",
    )
    callback: str = Field("https://portal:8443", description="Address that runners call back.")
    gateway_ports: tuple[int, int] = Field((0, 0), description="Port range on nodes; 0: any.")
    heartbeat_seconds: int = Field(10, ge=1, description="Time between two usage reports.")


class StateSettings(BaseModel):
    """Where the portal keeps what it must not lose."""

    model_config = FROZEN

    directory: str = Field("/var/lib/slipway", description="Database, keys and certificates.")
    run: str = Field("/run/slipway", description="Sockets between the portal and HAProxy.")
    database: str = Field("", description="SQLAlchemy address; empty: SQLite in the directory.")
    journal_days: int = Field(365, ge=1, description="Days that the journal's lines are kept.")

    @property
    def database_url(self) -> str:
        """The database's address."""
        return self.database or f"sqlite:///{self.directory}/slipway.db"

    def ca_file(self, name: str) -> Path:
        """A file of the certificate authorities."""
        return Path(self.directory) / "ca" / name


class Settings(BaseModel):
    """All settings."""

    model_config = FROZEN

    web: WebSettings = Field(WebSettings(), description="Where people find the portal.")
    login: LoginSettings = Field(LoginSettings(), description="The login node.")
    slurm: SlurmSettings = Field(SlurmSettings(), description="How Slurm is asked.")
    sessions: SessionSettings = Field(SessionSettings(), description="What runs in a session.")
    state: StateSettings = Field(StateSettings(), description="What must not be lost.")


class SettingsError(Exception):
    """The settings file is missing or wrong; the text names the key."""


def load_settings(path: str | None = None) -> Settings:
    """Read the TOML file (argument, else SLIPWAY_CONFIG, else /etc/slipway/slipway.toml).

    SLIPWAY_PUBLIC_URL overrides web.public_url, since a container learns its port only at start.
    """
    file = Path(path or os.environ.get("SLIPWAY_CONFIG", "/etc/slipway/slipway.toml"))
    try:
        data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file}: {error.strerror}") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: {error}") from error
    if url := os.environ.get("SLIPWAY_PUBLIC_URL"):
        data.setdefault("web", {})["public_url"] = url
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
        raise SettingsError(f"{file}: " + "; ".join(lines)) from error
