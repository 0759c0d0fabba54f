"""The client of a request to JupyterHub, and the headers that name it to the portal."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from tornado.httputil import HTTPServerRequest

Address = IPv4Address | IPv6Address

FRONT_END = "Slipway-Front-End"
"""Header with a secret that authenticates the header CLIENT."""
CLIENT = "Slipway-Client"


def client_headers(request: HTTPServerRequest, token_file: str) -> dict[str, str]:
    """The headers that name the client of a request to the portal; raises OSError.

    `token_file`: the proof, [hub] front_end_token_file of the portal's settings; "" for none.
    """
    address = client_address(request) if token_file else ""
    if not address:
        return {}
    return {FRONT_END: Path(token_file).read_text(encoding="ascii").strip(), CLIENT: address}


def client_address(request: HTTPServerRequest) -> str:
    """The client's address according to JupyterHub's own proxy; "" if there is none.

    The proxy appends the address to those that the client claims (X-Forwarded-For). So does a proxy
    in front of it, which is trusted if c.JupyterHub.trusted_downstream_ips has its address. A peer
    that connects to JupyterHub without its proxy is the client, whatever the headers say; tornado's
    `remote_ip` trusts the headers, and X-Real-IP, of every peer.
    """
    connection: Any = request.connection
    trusted = set(_addresses(connection.context.trusted_downstream))
    peer = _peer(connection)
    if peer is not None and peer not in trusted:
        return str(peer)
    for text in reversed(request.headers.get("X-Forwarded-For", "").split(",")):
        address = _address(text)
        if address not in trusted:
            return str(address or "")
    return ""


def _peer(connection: Any) -> Address | None:
    """The peer's address; None for a program on this machine, such as JupyterHub's proxy."""
    address, socket = connection.context.address, connection.stream.socket
    if not isinstance(address, tuple):
        return None  # a unix socket
    # Both ends have the same address, for example with a host name in hub_connect_url.
    is_local = socket is not None and socket.getsockname()[0] == address[0]
    peer = _address(address[0])
    return None if is_local or peer is None or peer.is_loopback else peer


def _addresses(texts: Iterable[str]) -> Iterable[Address]:
    return filter(None, map(_address, texts))


def _address(text: str) -> Address | None:
    """Parse an address, without zone and IPv4 mapping; None for anything else."""
    try:
        address = ipaddress.ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
