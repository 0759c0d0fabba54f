"""[state] and [service]: the portal's data, and its processes."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from portal.config.base import FROZEN


class StateSettings(BaseModel):
    """Locations of the portal's data."""

    model_config = FROZEN

    directory: str = Field(
        "/var/lib/slipway", description="Folder of the database, keys and certificates."
    )
    run: str = Field(
        "/run/slipway", description="Folder of the sockets between portal and HAProxy."
    )
    database: str = Field("", description="SQLAlchemy URL; empty: SQLite in the directory.")
    hosts: Literal["auto", "one", "several"] = Field(
        "auto",
        description="Whether several portal hosts share the database. With several, each host's "
        "HAProxy closes the apps when the host has not followed the database for five seconds. "
        "auto: several with PostgreSQL, one with SQLite.",
    )
    host_name: str = Field(
        "",
        pattern=r"^[A-Za-z0-9._-]{0,64}$",
        description="The name of this one of several hosts; empty: the machine's host name.",
    )
    journal_days: int = Field(365, ge=1, description="Days that events of the audit log are kept.")

    @property
    def database_url(self) -> str:
        """The database's SQLAlchemy URL."""
        return self.database or f"sqlite:///{self.directory}/slipway.db"

    @property
    def several_hosts(self) -> bool:
        """Whether this may be one of several portal hosts."""
        if self.hosts == "auto":
            return self.database.startswith("postgresql")
        return self.hosts == "several"

    @property
    def this_host(self) -> str:
        """The name of this portal host."""
        return self.host_name or socket.gethostname()

    @property
    def keys(self) -> Path:
        """Folder of the keys that encrypt values in the database."""
        return Path(self.directory) / "keys"

    @property
    def metrics(self) -> Path:
        """Folder of the metrics shared by all processes."""
        return Path(self.run) / "metrics"

    def ca_file(self, name: str) -> Path:
        """A file of the certificate authorities."""
        return Path(self.directory) / "ca" / name


class ServiceSettings(BaseModel):
    """Supervision of the portal's processes, for `slipway apply`."""

    model_config = FROZEN

    supervisor: Literal["systemd", "supervisord", "none"] = Field(
        "systemd",
        description="What runs HAProxy, web and worker: systemd (slipway-proxy, slipway-web, "
        "slipway-worker), supervisord (programs haproxy, web, worker), or none: then "
        "`slipway apply` prints what is to be done.",
    )
    supervisorctl: str = Field(
        "supervisorctl", min_length=1, description="Command that controls supervisord."
    )
    haproxy_config: str = Field(
        "/etc/slipway/haproxy.cfg", description="HAProxy's configuration, which is rendered."
    )
    units: str = Field(
        "/etc/systemd/system",
        description="Folder of the systemd units; those that are there are kept current.",
    )
