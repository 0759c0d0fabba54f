"""Requests to permitted hosts, following redirects to permitted hosts."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import ssl
from urllib.parse import urljoin, urlsplit

from portal.node.file_server.errors import Refused
from portal.node.file_server.operations.fetch_rules import PORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from portal.node.file_server.operations.fetch_rules import FetchRules, Source

SECONDS = 30.0
"""For a connection, and for each piece of an answer."""
MOST_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)


class Answer:
    """A response with its connection."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection, self.response = connection, response

    def __enter__(self) -> http.client.HTTPResponse:
        return self.response

    def __exit__(self, *_: object) -> None:
        self.response.close()
        self._connection.close()


def get(rules: FetchRules, url: str, headers: Mapping[str, str]) -> Answer:
    """Send a GET request; raises Refused, OSError, HTTPException."""
    for _ in range(MOST_REDIRECTS):
        source = rules.source(url)
        answer = _get(rules, source, headers)
        place = answer.response.headers.get("Location", "")
        if answer.response.status not in _REDIRECTS or not place:
            return answer
        answer.__exit__()
        before, url = url, urljoin(url, place)
        if (urlsplit(before).scheme, urlsplit(url).scheme) == ("https", "http"):
            raise Refused(403, "host", "It leads from https to http.", "url")
    raise Refused(409, "loop", "It leads from one address to another without an end.", "url")


def _get(rules: FetchRules, source: Source, headers: Mapping[str, str]) -> Answer:
    connection, target = _connection(rules, source)
    try:
        connection.request("GET", target, headers=dict(headers))
        return Answer(connection, connection.getresponse())
    except BaseException:
        connection.close()
        raise


def _connection(rules: FetchRules, source: Source) -> tuple[http.client.HTTPConnection, str]:
    """A connection, which is opened by its first request, and the target of that."""
    host, port = source.host, source.port
    if rules.proxy:
        proxy = urlsplit(rules.proxy)
        host, port = proxy.hostname or "", proxy.port or 3128
    if source.scheme == "https":
        context = ssl.create_default_context()
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=SECONDS, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=SECONDS)
    if not rules.proxy:
        if not source.is_named:
            connection._create_connection = _connect_publicly  # type: ignore[attr-defined]
        return connection, source.target
    if source.scheme == "https":
        connection.set_tunnel(source.host, source.port)
        return connection, source.target
    place = source.host if source.port == PORTS["http"] else f"{source.host}:{source.port}"
    return connection, f"http://{place}{source.target}"


def _connect_publicly(
    address: tuple[str, int], timeout: float | None = None, *_: Any
) -> socket.socket:
    """As socket.create_connection, but only to addresses of the public internet."""
    problem: OSError | Refused | None = None
    for family, kind, protocol, _name, place in socket.getaddrinfo(
        *address, type=socket.SOCK_STREAM
    ):
        if not is_public(str(place[0])):
            detail = f"{address[0]} has the address {place[0]}, which is not a public one."
            problem = Refused(403, "host", detail, "url")
            continue
        stream = socket.socket(family, kind, protocol)
        stream.settimeout(timeout)
        try:
            stream.connect(place)
        except OSError as error:
            stream.close()
            problem = error
        else:
            return stream
    raise problem or OSError("no address")


def is_public(text: str) -> bool:
    """Whether an address is one of the public internet: not private, of this host or link."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return is_public(str(inner))
    return address.is_global and not address.is_multicast
