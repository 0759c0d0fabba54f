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
from typing import cast
from urllib.parse import parse_qsl, urlsplit

from portal.node.file_server.errors import Refused, refusal_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from portal.node.file_server.server import FileServer
    from portal.node.file_server.uploads.uploads import Uploads

MOST_JSON = 1024 * 1024
"""Bytes of a request's JSON."""
PIECE = 512 * 1024
METHODS = (
    "GET HEAD PUT POST PATCH DELETE OPTIONS PROPFIND PROPPATCH MKCOL COPY MOVE LOCK UNLOCK".split()
)
_LENGTH = re.compile(r"[0-9]{1,18}")
MOMENT = 10
"""Milliseconds to wait for more of a body before what is there is handed on."""
DISCARD_SECONDS = 2.0
IDLE_SECONDS = 75.0
"""Longer than HAProxy keeps an idle connection, so that we do not close one that it uses."""
MOST_CONNECTIONS = 200
"""Of clients that have shown the portal's certificate."""
MOST_STRANGERS = 64
"""Connections of clients that have not; anybody on this host's network may connect."""


class Places:
    """Connections: those of clients that have shown their certificate, and the others' apart.

    If the others' places are all taken, the one that has waited longest is cut.
    """

    def __init__(self, most: int = MOST_CONNECTIONS, strangers: int = MOST_STRANGERS) -> None:
        self._most, self._most_strangers = most, strangers
        self._lock = threading.Lock()
        self._admitted: set[socket.socket] = set()
        # Oldest first.
        self._strangers: dict[socket.socket, None] = {}

    def enter(self, stream: socket.socket) -> None:
        """A client has connected."""
        oldest = None
        with self._lock:
            if len(self._strangers) >= self._most_strangers:
                oldest = next(iter(self._strangers))
                del self._strangers[oldest]
            self._strangers[stream] = None
        if oldest is not None:
            with contextlib.suppress(OSError):
                # Not by TLS, in which its own thread is.
                socket.socket.shutdown(oldest, socket.SHUT_RDWR)

    def admit(self, stream: socket.socket) -> None:
        """It has shown its certificate; OSError if there are too many."""
        with self._lock:
            self._strangers.pop(stream, None)
            if len(self._admitted) >= self._most:
                raise OSError("too many connections")
            self._admitted.add(stream)

    def leave(self, stream: socket.socket) -> None:
        """The connection is over."""
        with self._lock:
            self._strangers.pop(stream, None)
            self._admitted.discard(stream)


class Request(BaseHTTPRequestHandler):
    """One connection; FileServer.answer handles its requests."""

    protocol_version = "HTTP/1.1"
    server_version = "Slipway"
    sys_version = ""
    timeout = IDLE_SECONDS

    query: dict[str, str]
    route: str
    """The path, still percent-encoded."""
    read_only: bool
    """Whether the client may not change anything, by the name under which it connected."""
    always: dict[str, str]
    """Headers of the response, whatever it is."""
    _remaining: int
    _chunked: bool
    _answered: bool

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
        self.always = {}
        self._chunked = "chunked" in self.headers.get("Transfer-Encoding", "").lower()
        length = self.headers.get("Content-Length", "0")
        self._remaining = int(length) if _LENGTH.fullmatch(length) else 0
        try:
            cast("FileServer", self.server).answer(self)
        except Refused as error:
            self._refuse(error)
        except (ConnectionError, TimeoutError, ssl.SSLError):
            raise
        except OSError as error:
            self._refuse(refusal_of(error))
        except Exception:  # a mistake of ours: the client should hear of it
            self._refuse(Refused(500, "error", "The file server cannot do this: report it."))
        if self._remaining or self._chunked:
            self.close_connection = True
            self._discard()

    def _discard(self) -> None:
        """Receive the rest of a body for a moment: closing at once would reset the connection,
        and the client might never see the answer.
        """
        self.request.settimeout(DISCARD_SECONDS)
        deadline = time.monotonic() + DISCARD_SECONDS
        with contextlib.suppress(OSError):
            # Not TLS's own end, after which nothing could be received.
            socket.socket.shutdown(self.request, socket.SHUT_WR)
            while time.monotonic() < deadline and self.rfile.read1(PIECE):
                pass

    @property
    def uploads(self) -> Uploads:
        """What is being written."""
        return cast("FileServer", self.server).uploads

    # Reading

    @property
    def length(self) -> int | None:
        """Bytes of the body that have not been read yet; None if the client did not say."""
        return None if self._chunked else self._remaining

    def handle_expect_100(self) -> bool:
        """Do not ask for the body before it is clear that it will be read."""
        return True

    def body(self, limit: int | None = None) -> Iterable[memoryview]:
        """The request's body in pieces, as it arrives; raises Refused if it is longer.

        A piece is valid only until the next one is asked for.
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
        """Receive until the buffer is full or nothing more comes; TLS gives 16 KB at a time."""
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
        """Whether more comes within a moment."""
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
            found = json.loads(b"".join(map(bytes, self.body(MOST_JSON))) or b"{}")
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise Refused(422, "value", "This is not a JSON object.")
        return found

    # Answering

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

    def reply_json(self, data: object, status: int = 200) -> None:
        """Send JSON."""
        text = json.dumps(data).encode() + b"\n"
        self.reply(status, {"Content-Type": "application/json"}, len(text))
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
        if self._answered:  # the client notices by the missing end
            self.close_connection = True
            return
        text = json.dumps(
            {
                "type": "about:blank",
                "title": self.responses.get(error.status, ("Error", ""))[0],
                "status": error.status,
                "detail": error.detail,
                "code": error.code,
                "field": error.field,
                "folders": error.folders,
            }
        ).encode()
        self.reply(error.status, {"Content-Type": "application/problem+json"}, len(text))
        if self.command != "HEAD":
            self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: names of files are the user's."""

    def setup(self) -> None:
        """Complete the TLS handshake in this connection's own thread."""
        assert isinstance(self.request, ssl.SSLSocket)  # noqa: S101  # server.py made it
        self.request.settimeout(10.0)
        self.request.do_handshake()
        cast("FileServer", self.server).places.admit(self.request)
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._poll = select.poll()
        self._poll.register(self.request, select.POLLIN)
        super().setup()


for _method in METHODS:
    setattr(Request, f"do_{_method}", Request.handle_method)
