"""[state]: where the portal keeps its data."""

from __future__ import annotations

import socket
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

    def ca_file(self, name: str) -> Path:
        """A file of the certificate authorities."""
        return Path(self.directory) / "ca" / name
