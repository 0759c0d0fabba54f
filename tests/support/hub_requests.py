"""Requests to JupyterHub, and its users."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from tornado.httputil import HTTPHeaders, HTTPServerRequest, RequestStartLine


class HubUser:
    """A user of JupyterHub's."""

    def __init__(self, state: dict[str, str] | None) -> None:
        self.state = state

    async def get_auth_state(self) -> dict[str, str] | None:
        """What JupyterHub has stored."""
        return dict(self.state) if self.state else None

    async def save_auth_state(self, state: dict[str, str] | None) -> None:
        """Store it."""
        self.state = state


HUB, NGINX, NODE, CLIENT_AT, VICTIM = (
    "10.0.0.40", "10.0.0.5", "10.0.0.21", "192.0.2.7", "198.51.100.1",
)  # fmt: skip


def hub_request(
    peer: str | None, *forwarded: str, trusted: Sequence[str] = (), **headers: str
) -> HTTPServerRequest:
    """A request to JupyterHub, which is at HUB; `peer`: None on a unix socket."""
    sent = HTTPHeaders({"Host": "hub.example.org"})
    for value in forwarded:
        sent.add("X-Forwarded-For", value)
    for name, value in headers.items():
        sent.add(name.replace("_", "-"), value)
    context = SimpleNamespace(
        address="" if peer is None else (peer, 4444),
        trusted_downstream=set(trusted),
        remote_ip="0.0.0.0",
    )
    socket = SimpleNamespace(getsockname=lambda: (HUB, 8081))
    connection: Any = SimpleNamespace(context=context, stream=SimpleNamespace(socket=socket))
    start = RequestStartLine("POST", "/hub/login", "HTTP/1.1")
    return HTTPServerRequest(start_line=start, headers=sent, connection=connection)
