"""[state] and [service]: where the portal keeps its data, and how its processes are run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field

from portal.config.base import FROZEN


class StateSettings(BaseModel):
    """Where the portal keeps its data."""

    model_config = FROZEN

    directory: str = Field(
        "/var/lib/slipway", description="Folder of the database, keys and certificates."
    )
    run: str = Field(
        "/run/slipway", description="Folder of the sockets between portal and HAProxy."
    )
    database: str = Field("", description="SQLAlchemy URL; empty: SQLite in the directory.")
    journal_days: int = Field(365, ge=1, description="Days that events of the audit log are kept.")

    @property
    def database_url(self) -> str:
        """The database's SQLAlchemy URL."""
        return self.database or f"sqlite:///{self.directory}/slipway.db"

    @property
    def keys(self) -> Path:
        """Folder of the keys that encrypt values in the database."""
        return Path(self.directory) / "keys"

    @property
    def metrics(self) -> Path:
        """Folder in which all processes count together for metrics."""
        return Path(self.run) / "metrics"

    def ca_file(self, name: str) -> Path:
        """A file of the certificate authorities."""
        return Path(self.directory) / "ca" / name


class ServiceSettings(BaseModel):
    """How the portal's own processes are run, for `slipway apply`."""

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
