"""Whom a request of JupyterHub's comes from, and how the portal is told."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

from tornado.httputil import HTTPServerRequest

Address = IPv4Address | IPv6Address

FRONT_END = "Slipway-Front-End"
"""Proves that the header CLIENT may be believed."""
CLIENT = "Slipway-Client"


def named(request: HTTPServerRequest, token_file: str) -> dict[str, str]:
    """The headers that name the client of a request to the portal; raises OSError.

    `token_file`: the proof, [hub] front_end_token_file of the portal's settings; "" for none.
    """
    address = client_address(request) if token_file else ""
    if not address:
        return {}
    return {FRONT_END: Path(token_file).read_text(encoding="ascii").strip(), CLIENT: address}


def client_address(request: HTTPServerRequest) -> str:
    """The address that JupyterHub's own proxy has seen; "" if it names none.

    The proxy adds that address behind those that the client claims (X-Forwarded-For). A proxy in
    front of it does the same, if c.JupyterHub.trusted_downstream_ips has its address. Whoever
    connects to JupyterHub without its proxy is the client, whatever the headers say; tornado's own
    `remote_ip` follows them, and X-Real-IP, from anybody.
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
    """Who has connected; None for a program of this machine, as JupyterHub's proxy is."""
    address, socket = connection.context.address, connection.stream.socket
    if not isinstance(address, tuple):
        return None  # a unix socket
    # One address at both ends: such as with the name in hub_connect_url.
    here = socket is not None and socket.getsockname()[0] == address[0]
    peer = _address(address[0])
    return None if here or peer is None or peer.is_loopback else peer


def _addresses(texts: Iterable[str]) -> Iterable[Address]:
    return filter(None, map(_address, texts))


def _address(text: str) -> Address | None:
    """An address without its zone, and as IPv4 where it is that; None for anything else."""
    try:
        found = ipaddress.ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found
