"""HTTP requests to one registry, with one deadline, bounded answers and checked redirects.

The deadline holds for each byte: it is set before every call of a socket, also while a header or a
body comes byte by byte. Name lookups have only the resolver's own timeouts.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import re
import socket
import ssl
import string
import time
import urllib.error
import urllib.parse
import urllib.request

from portal.node.batch.image import ImageError
from portal.node.batch.image.addresses import Reach, reach_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from email.message import Message
    from typing import Any

SECONDS = 30.0
"""Timeout of all requests to a registry together, with its token service and redirects."""
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_PIECE = 64 * 1024
# Without user, password and escapes: urllib undoes escapes after an address was checked.
_NETLOC = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
# Errors of sockets and TLS, and invalid HTTP.
_FAILURES = (OSError, ValueError, http.client.HTTPException)


class Answer:
    """An answer after all redirects; `body` is that of a successful one only."""

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: Message, body: bytes = b"") -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Exchange:
    """Requests to one registry, and to the hosts to which its answers lead."""

    def __init__(self, host: str, *, insecure: bool = False) -> None:
        self._host = host
        self._name = urllib.parse.urlsplit(f"//{host}").hostname
        self._schemes = ("http", "https") if insecure else ("https",)
        self._end = time.monotonic() + SECONDS
        self._reach = Reach.PUBLIC
        """The registry's own, once connected: its answers must not lead to nearer addresses."""
        self._opener = urllib.request.OpenerDirector()
        for handler in (
            urllib.request.ProxyHandler(),
            urllib.request.UnknownHandler(),
            urllib.request.HTTPDefaultErrorHandler(),
            urllib.request.HTTPErrorProcessor(),
            _Handler(self.left, self._connect),
        ):
            self._opener.add_handler(handler)

    def left(self) -> float:
        """Seconds until the deadline; raises TimeoutError after it."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def get(self, url: str, accept: str, authorization: str, most: int) -> Answer:
        """Send a GET, and return at most `most` bytes; redirects get no authorization.

        Raises ImageError.
        """
        try:
            return self._get(url, accept, authorization, most)
        except _FAILURES as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, (TimeoutError, socket.timeout)):
                text = f"has not answered completely within {SECONDS:.0f} seconds"
                raise ImageError(f"the registry {self._host} {text}") from None
            raise ImageError(f"the registry {self._host} cannot be reached: {reason}") from None

    def is_own(self, url: str) -> bool:
        """Whether it is at the registry's own host, whatever its port; raises ValueError."""
        return urllib.parse.urlsplit(url).hostname == self._name

    def _get(self, url: str, accept: str, authorization: str, most: int) -> Answer:
        for _ in range(1 + _MOST_REDIRECTS):
            self._check_url(url)
            request = urllib.request.Request(url, headers={"Accept": accept})  # noqa: S310
            if authorization:
                request.add_header("Authorization", authorization)
            try:
                opened = self._opener.open(request, timeout=self.left())
            except urllib.error.HTTPError as error:
                error.close()
                target = error.headers.get("Location")
                if error.code not in _REDIRECTS or not target:
                    return Answer(error.code, error.headers)
                quoted = urllib.parse.quote(target, safe=string.punctuation, encoding="latin-1")
                url, authorization = urllib.parse.urljoin(url, quoted), ""
            else:
                with contextlib.closing(opened) as answer:
                    return Answer(answer.status, answer.headers, self._body(answer, most))
        raise ImageError(f"the registry {self._host} leads from one address to another, too often")

    def _body(self, answer: http.client.HTTPResponse, most: int) -> bytes:
        body = bytearray()  # the pieces may be single bytes
        while piece := answer.read1(_PIECE):
            body += piece
            if len(body) > most:
                raise ImageError(f"{self._host} answered with more than {most} bytes")
        return bytes(body)

    def _check_url(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in self._schemes or not host or not _NETLOC.fullmatch(parts.netloc):
            raise ImageError(f"the registry {self._host} leads to {url[:100]}, which is not used")
        # Behind a proxy, which looks names up, this is all that can be known.
        with contextlib.suppress(ValueError):
            self._check_reach(host, "127.0.0.1" if host == "localhost" else host)

    def _check_reach(self, host: str, address: str) -> None:
        """Refuse another host's address that is nearer to this machine than the registry itself."""
        reach = reach_of(address)
        if host != self._name and (reach is Reach.LOCAL or reach < self._reach):
            where = "on this machine" if reach is Reach.LOCAL else "in a private network"
            raise ImageError(
                f"the registry {self._host} leads to {host}, which is {where} ({address})"
            )

    def _connect(self, host: str, port: int, is_proxy: bool) -> socket.socket:
        """Connect to a host; all its addresses are checked, and only these are used."""
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        for *_, address in addresses if not is_proxy else ():
            self._check_reach(host, str(address[0]))
        last_error: OSError = OSError("it has no address")
        for number, (family, kind, protocol, _, address) in enumerate(addresses):
            opened = _plain(self.left)(family, kind, protocol)
            try:
                opened.settimeout(self.left() / (len(addresses) - number))
                opened.connect(address)
            except OSError as error:
                opened.close()
                last_error = error
            else:
                if host == self._name and not is_proxy:
                    self._reach = reach_of(str(address[0]))
                opened.settimeout(self.left())
                return opened
        raise last_error


class _Handler(urllib.request.AbstractHTTPHandler):
    """http and https over connections that the exchange opens."""

    def __init__(
        self, left: Callable[[], float], connect: Callable[[str, int, bool], socket.socket]
    ) -> None:
        super().__init__()
        self._connect = connect
        self._tls = ssl.create_default_context()
        self._tls.sslsocket_class = _tls(left)

    def http_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open an http URL."""
        factory = functools.partial(self._connection, request, http.client.HTTPConnection)
        return self.do_open(factory, request)

    def https_open(self, request: urllib.request.Request) -> http.client.HTTPResponse:
        """Open an https URL."""
        factory = functools.partial(self._connection, request, http.client.HTTPSConnection)
        return self.do_open(factory, request, context=self._tls)

    http_request = https_request = urllib.request.AbstractHTTPHandler.do_request_

    def _connection(
        self, request: urllib.request.Request, kind: Any, host: str, **options: Any
    ) -> http.client.HTTPConnection:
        is_proxy = host != urllib.parse.urlsplit(request.full_url).netloc
        connection: Any = kind(host, **options)
        connection._create_connection = lambda address, *_: self._connect(
            address[0], address[1], is_proxy
        )
        return connection  # type: ignore[no-any-return]


def _plain(left: Callable[[], float]) -> type[socket.socket]:
    class Plain(socket.socket):
        """A socket whose reads end at the deadline."""

        def recv_into(self, *words: Any) -> int:
            self.settimeout(left())
            return super().recv_into(*words)

    return Plain


def _tls(left: Callable[[], float]) -> type[ssl.SSLSocket]:
    class Tls(ssl.SSLSocket):
        """The same for TLS; its handshake has the time that remained when it was connected."""

        def recv_into(self, *words: Any) -> int:
            self.settimeout(left())
            return super().recv_into(*words)

    return Tls
