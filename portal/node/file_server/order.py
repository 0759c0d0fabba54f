"""The order: a file server's configuration, which the portal writes to its stdin."""

from __future__ import annotations

import hashlib
import socket
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


@dataclass(frozen=True)
class Order:
    """The configuration of one file server, as the portal sends it at the start."""

    id: str
    """Random; part of the server's name in its certificate."""
    certificate: str
    """PEM of the private key and the certificate."""
    client_ca: str
    """PEM of the authority that signs the certificates of all permitted clients."""
    roots: Mapping[str, str]
    """Paths by the root's name."""
    ports: tuple[int, int] = (0, 0)
    idle_minutes: float = 15.0
    upload_hours: float = 48.0
    shared: str = ""
    """Path of every user's storage folders, as in the site's settings: with {user}, or relative to
    the home directory."""
    quota: Mapping[str, str] = field(default_factory=dict)
    """By the root's name, how its quota is read (quota.py)."""
    fetch: Mapping[str, Any] = field(default_factory=dict)
    """From where files may be fetched (operations/fetch_rules.py): hosts, http, proxy."""
    unless: str = ""
    """The id of a server that is not replaced if it is still running."""

    @property
    def scope(self) -> str:
        """The key of this host and portal, for which one server runs at a time."""
        return hashlib.sha256(f"{socket.gethostname()} {self.client_ca}".encode()).hexdigest()[:12]
