"""[state]: where the portal keeps its data."""

from __future__ import annotations

from pathlib import Path

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
