"""A user's file server, and the routes of HAProxy's that lead to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

LABEL = "~files"
"""Begins the keys of HAProxy's map for files; no app's origin can be named so."""
CONTROL, WRITE, READ = "control", "files", "read"
"""Under which name a client connects: the portal; those who may change files; those who may not."""


@dataclass(frozen=True)
class FileServer:
    """A running server, as far as the portal knows."""

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
    """What a file server is told at its start (node/file_server/server.py, Order)."""

    id: str
    certificate: str
    client_ca: str
    roots: Mapping[str, str]
    ports: tuple[int, int]
    idle_minutes: float
    upload_hours: float
    shared: str = ""
    """Where any user's storage folders are: the site's setting."""
    quota: Mapping[str, str] = field(default_factory=dict)
    unless: str = ""
    """The id of a server: if it still runs, it stays, and no other is started."""


@dataclass(frozen=True)
class FileRequest:
    """A request to a file server."""

    method: str
    path: str
    """Such as /v1/list/home/data?sort=size, percent-encoded."""
    body: Mapping[str, object] | None = None


class NoReply(Enum):
    """Why nothing was done by a server: it does not answer at its address."""

    ENDED = "ended"
    SILENT = "silent"
    """Something is there that says nothing: the server on a busy host, or another's program."""


@dataclass(frozen=True)
class FileReply:
    """A file server's response: its status, and its JSON."""

    status: int
    data: Mapping[str, object]
