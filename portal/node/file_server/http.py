"""HTTP/1.1 for one connection: requests to handlers, results and errors to responses."""

from __future__ import annotations

import contextlib
import json
import re
import select
import socket
import ssl
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qsl, urlsplit
from xml.sax.saxutils import escape

from portal.node.file_server.errors import Refused, refusal_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from socketserver import BaseServer
    from typing import Any

MOST_JSON = 1024 * 1024
"""Bytes of a request's JSON."""
PIECE = 512 * 1024
METHODS = (
    "GET HEAD PUT POST PATCH DELETE OPTIONS PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK".split()
)
XML = "application/xml; charset=utf-8"
XML_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
_LENGTH = re.compile(r"[0-9]{1,18}")
WORKING_SECONDS = 45.0
"""Between two interim responses: HAProxy gives up after 120 seconds without any."""
MOMENT = 10
"""Milliseconds to wait for more of a body before a piece is passed on."""
DISCARD_SECONDS = 2.0
IDLE_SECONDS = 75.0
"""Longer than HAProxy keeps an idle connection, so that it never uses one that we close."""
MOST_CONNECTIONS = 200
"""Connections of clients with a certificate of the portal's authority."""
MOST_UNVERIFIED = 64
"""Connections before the client's certificate is verified; any host of the network can connect."""


class Connections:
    """Open connections, with separate limits before and after the TLS handshake.

    Beyond the limit of unverified connections, the oldest of them is closed.
    """

    def __init__(self, most: int = MOST_CONNECTIONS, unverified: int = MOST_UNVERIFIED) -> None:
        self._most, self._most_unverified = most, unverified
        self._lock = threading.Lock()
        self._verified: set[socket.socket] = set()
        # Oldest first.
        self._unverified: dict[socket.socket, None] = {}

    def enter(self, stream: socket.socket) -> None:
        """Add a new connection."""
        oldest = None
        with self._lock:
            if len(self._unverified) >= self._most_unverified:
                oldest = next(iter(self._unverified))
                del self._unverified[oldest]
            self._unverified[stream] = None
        if oldest is not None:
            with contextlib.suppress(OSError):
                # Not the TLS socket's method: its thread is using that.
                socket.socket.shutdown(oldest, socket.SHUT_RDWR)

    def admit(self, stream: socket.socket) -> None:
        """Move a connection after its TLS handshake; raises OSError if there are too many."""
        with self._lock:
            self._unverified.pop(stream, None)
            if len(self._verified) >= self._most:
                raise OSError("too many connections")
            self._verified.add(stream)

    def leave(self, stream: socket.socket) -> None:
        """Remove a closed connection."""
        with self._lock:
            self._unverified.pop(stream, None)
            self._verified.discard(stream)


class Request(BaseHTTPRequestHandler):
    """One connection, and the request on it that is being answered by `answer`."""

    protocol_version = "HTTP/1.1"
    server_version = "Slipway"
    sys_version = ""
    timeout = IDLE_SECONDS

    query: dict[str, str]
    route: str
    """The path, still percent-encoded."""
    read_only: bool
    """Whether the client may only read, by the server name that it requested."""
    always: dict[str, str]
    """Headers of every response to this request."""
    _remaining: int
    _chunked: bool
    _answered: bool
    _heard: float
    """When the client last heard of this server, by time.monotonic()."""

    def __init__(
        self,
        connection: Any,
        address: Any,
        server: BaseServer,
        *,
        answer: Callable[[Request], None],
        connections: Connections,
    ) -> None:
        self._answer, self._connections = answer, connections
        # Handles all requests of the connection before it returns.
        super().__init__(connection, address, server)

    def handle_one_request(self) -> None:
        """Handle the next request of the connection."""
        try:
            super().handle_one_request()
        except (ConnectionError, TimeoutError, ssl.SSLError):
            self.close_connection = True

    def handle_method(self) -> None:
        """Handle a request of any method."""
        parts = urlsplit(self.path)
        self.route = parts.path
        self.query = dict(parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape"))
        self._answered = False
        self._heard = time.monotonic()
        self.always = {}
        self._chunked = "chunked" in self.headers.get("Transfer-Encoding", "").lower()
        length = self.headers.get("Content-Length", "0")
        self._remaining = int(length) if _LENGTH.fullmatch(length) else 0
        try:
            self._check()
            self._answer(self)
        except Refused as error:
            self._refuse(error)
        except (ConnectionError, TimeoutError, ssl.SSLError):
            raise
        except OSError as error:
            self._refuse(refusal_of(error))
        except Exception:  # a bug: tell the client
            self._refuse(Refused(500, "error", "The file server cannot do this: report it."))
        if self._remaining or self._chunked:
            self.close_connection = True
            self._discard()

    def _check(self) -> None:
        """Refuse what no handler can carry out as it was meant."""
        if "#" in self.path:  # otherwise the fragment's parent would be changed
            raise Refused(400, "value", "An address that is requested has no “#”.", "path")
        if self.command == "PUT" and "Content-Range" in self.headers:
            raise Refused(
                400,
                "range",
                "A part of a file is not accepted here: it would replace the whole file. Send the "
                "file without Content-Range, or use tus (/data/uploads/) to resume an upload.",
                "Content-Range",
            )

    def _discard(self) -> None:
        """Receive the remaining body for a moment.

        Closing at once would reset the connection, and the client might not receive the response.
        """
        self.request.settimeout(DISCARD_SECONDS)
        deadline = time.monotonic() + DISCARD_SECONDS
        with contextlib.suppress(OSError):
            # Not TLS's close notification, after which nothing could be received.
            socket.socket.shutdown(self.request, socket.SHUT_WR)
            while time.monotonic() < deadline and self.rfile.read1(PIECE):
                pass

    # Reading

    @property
    def length(self) -> int | None:
        """Bytes of the body that were not read yet; None if the length is unknown."""
        return None if self._chunked else self._remaining

    def handle_expect_100(self) -> bool:
        """Do not send 100 Continue yet: body() does when a handler reads it."""
        return True

    def body(self, limit: int | None = None) -> Iterable[memoryview]:
        """Yield the request's body in pieces, as it arrives; raises Refused if it is too long.

        A piece is valid only until the next one is requested.
        """
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(HTTPStatus.CONTINUE)
            self.end_headers()
        read = 0
        for piece in self._chunks() if self._chunked else self._known_length():
            read += len(piece)
            if limit is not None and read > limit:
                raise Refused(413, "too_large", "This is longer than is accepted here.")
            yield piece

    def _known_length(self) -> Iterable[memoryview]:
        buffer = memoryview(bytearray(min(self._remaining, PIECE)))
        while self._remaining:
            size = self._fill(buffer[: self._remaining])
            self._remaining -= size
            yield buffer[:size]

    def _fill(self, buffer: memoryview) -> int:
        """Receive until the buffer is full or the client pauses; a TLS record has 16 KB at most."""
        size = 0
        while size < len(buffer):
            if size and not self._readable():
                break
            count = self.rfile.readinto1(buffer[size:])
            if not count:
                raise ConnectionResetError
            size += count
        return size

    def _readable(self) -> bool:
        """Whether more arrives within MOMENT."""
        return bool(self.request.pending() or self._poll.poll(MOMENT))

    def _chunks(self) -> Iterable[memoryview]:
        buffer = memoryview(bytearray(PIECE))
        while size := self._chunk_size():
            while size:
                count = self.rfile.readinto1(buffer[: min(size, PIECE)])
                if not count:
                    raise ConnectionResetError
                size -= count
                yield buffer[:count]
            self.rfile.readline(64)
        while self.rfile.readline(1024).strip():
            pass
        self._chunked = False

    def _chunk_size(self) -> int:
        try:
            size = int(self.rfile.readline(64).split(b";")[0].strip(), 16)
        except ValueError:
            raise ConnectionResetError from None
        if size < 0:
            raise ConnectionResetError
        return size

    def json(self) -> Any:
        """The request's body as a JSON object; raises Refused."""
        try:
            data = json.loads(b"".join(map(bytes, self.body(MOST_JSON))) or b"{}")
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict):
            raise Refused(422, "value", "This is not a JSON object.")
        return data

    # Responding

    def still_working(self) -> None:
        """Send an interim response, now and then, while the answer takes long.

        It is 100 Continue, which every client ignores; raises nothing if the client has gone.
        """
        if time.monotonic() - self._heard < WORKING_SECONDS:
            return
        self._heard = time.monotonic()
        with contextlib.suppress(OSError):
            self.send_response_only(HTTPStatus.CONTINUE)
            self.end_headers()

    def reply(
        self, status: int, headers: Mapping[str, str] | None = None, length: int | None = 0
    ) -> None:
        """Send the status and headers; length None: the body is sent in chunks."""
        self._answered = True
        self.send_response(status)
        for name, value in {**self.always, **(headers or {})}.items():
            self.send_header(name, value)
        if length is None:
            self.send_header("Transfer-Encoding", "chunked")
        elif status not in (204, 304):
            self.send_header("Content-Length", str(length))
        if self._remaining or self._chunked:
            self.send_header("Connection", "close")
        self.end_headers()

    def reply_json(
        self, data: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send JSON."""
        text = json.dumps(data).encode() + b"\n"
        self._reply_text(status, {**(headers or {}), "Content-Type": "application/json"}, text)

    def reply_xml(self, text: str, status: int, headers: Mapping[str, str] | None = None) -> None:
        """Send an XML document."""
        coded = XML_HEAD.encode() + text.encode()
        self._reply_text(status, {**(headers or {}), "Content-Type": XML}, coded)

    def _reply_text(self, status: int, headers: Mapping[str, str], text: bytes) -> None:
        self.reply(status, headers, len(text))
        if self.command != "HEAD":
            self.wfile.write(text)

    def chunk(self, piece: bytes) -> None:
        """Send a piece of a body without a length."""
        if piece:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

    def end_chunks(self) -> None:
        """End a body without a length."""
        self.wfile.write(b"0\r\n\r\n")

    def _refuse(self, error: Refused) -> None:
        if self._answered:  # the client notices the incomplete body
            self.close_connection = True
            return
        if error.condition:
            detail = f'<detail xmlns="urn:slipway">{escape(error.detail)}</detail>'
            text = f'<D:error xmlns:D="DAV:">{error.condition}{detail}</D:error>\n'
            self.reply_xml(text, error.status, error.headers)
            return
        problem = {
            "type": "about:blank",
            "title": self.responses.get(error.status, ("Error", ""))[0],
            "status": error.status,
            "detail": error.detail,
            "code": error.code,
            "field": error.field,
            "folders": error.folders,
        }
        headers = {**error.headers, "Content-Type": "application/problem+json"}
        self._reply_text(error.status, headers, json.dumps(problem).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: names of files are the user's."""

    def setup(self) -> None:
        """Complete the TLS handshake in this connection's own thread."""
        assert isinstance(self.request, ssl.SSLSocket)  # noqa: S101  # server.py made it
        self.request.settimeout(10.0)
        self.request.do_handshake()
        self._connections.admit(self.request)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll = select.poll()
        self._poll.register(self.request, select.POLLIN)
        super().setup()


for _method in METHODS:
    setattr(Request, f"do_{_method}", Request.handle_method)
