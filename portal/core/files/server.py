"""A user's file server, and HAProxy's routes to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

LABEL = "~files"
"""Prefix of the keys of HAProxy's map for files; not a valid label of an app's origin."""
CONTROL, WRITE, READ = "control", "files", "read"
"""Kinds of clients in server names: the portal, users who may write, users who may read."""


@dataclass(frozen=True)
class FileServer:
    """A file server that was started and is not known to have ended."""

    owner: str
    id: str
    """Random; part of its name in its certificate."""
    address: str
    port: int
    started: datetime

    def name(self, kind: str) -> str:
        """The name under which a client of this kind connects."""
        return f"{kind}.{self.id}.slipway"

    def target(self, kind: str) -> str:
        """The target of a route in HAProxy's map."""
        return f"{self.address}@{self.port}@{self.name(kind)}"


def route_key(secret_hash: str) -> str:
    """The key of HAProxy's map for a cookie or a token."""
    return f"{LABEL}.{secret_hash}"


@dataclass(frozen=True)
class StartOrder:
    """Parameters of a file server's start (node/file_server/order.py, Order)."""

    id: str
    certificate: str
    client_ca: str
    roots: Mapping[str, str]
    ports: tuple[int, int]
    idle_minutes: float
    upload_hours: float
    shared: str = ""
    """The directory of any user's storage folders: the site's setting."""
    quota: Mapping[str, str] = field(default_factory=dict)
    fetch: Mapping[str, object] = field(default_factory=dict)
    """From where files may be fetched: hosts, http, proxy."""
    unless: str = ""
    """The id of a server: if it still runs, no other is started."""


@dataclass(frozen=True)
class FileRequest:
    """A request to a file server."""

    method: str
    path: str
    """Such as /v1/list/home/data?sort=size, percent-encoded."""
    body: Mapping[str, object] | None = None


class NoReply(Enum):
    """Why a server did not answer at its address."""

    ENDED = "ended"
    SILENT = "silent"
    """The port is open without an answer: the server on a busy host, or another program."""


@dataclass(frozen=True)
class FileReply:
    """A file server's response: its status, and its JSON."""

    status: int
    data: Mapping[str, object]
