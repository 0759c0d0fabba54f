"""Limits how long a thread waits for a body: HAProxy buffers requests, except for long ones.

A response header tells HAProxy whether a long body was read: if not, HAProxy ends the request with
the response (`answer_at_once` in portal.cfg.j2), however much of the body is still missing.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable, Iterator
from typing import IO, Any

from portal.web.http.wsgi_types import Environ, StartResponse, Wsgi

WHOLE = 49152
"""Bytes; a body up to this size is complete when HAProxy forwards it (`held` in portal.cfg.j2)."""
SECONDS = 30.0
"""Limit for a complete longer body, after which the thread is free again."""
READ = ("X-Slipway-Body", "read")
"""The response header for HAProxy, which removes it."""


class BodyTimeout:
    """Aborts a body that takes too long, by shutting down the read side of the connection."""

    def __init__(self, app: Wsgi, seconds: float = SECONDS) -> None:
        self._app = app
        self._seconds = seconds

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request."""
        connection = environ.get("gunicorn.socket")
        if not isinstance(connection, socket.socket):
            return self._app(environ, start_response)
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if length <= WHOLE:
            return self._app(environ, start_response)
        body = environ["wsgi.input"] = _Body(environ["wsgi.input"], length)

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            return start_response(status, [*headers, READ] if body.read_whole else headers, *error)

        # The response can still be written: only the read side is shut down.
        timer = threading.Timer(self._seconds, _end_reading, [connection])
        timer.daemon = True
        timer.start()
        try:
            return self._app(environ, start)
        finally:
            timer.cancel()


class _Body:
    """A request's body; counts the bytes that are still to be read."""

    def __init__(self, stream: IO[bytes], length: int) -> None:
        self._stream = stream
        self._left = length

    @property
    def read_whole(self) -> bool:
        """Whether the complete body was read."""
        return self._left <= 0

    def _count(self, data: bytes) -> bytes:
        self._left -= len(data)
        return data

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, or all."""
        return self._count(self._stream.read(size))

    def readline(self, size: int = -1) -> bytes:
        """Read up to the end of a line."""
        return self._count(self._stream.readline(size))

    def readlines(self, hint: int = -1) -> list[bytes]:
        """Read all lines."""
        return [self._count(line) for line in self._stream.readlines(hint)]

    def __iter__(self) -> Iterator[bytes]:
        return map(self._count, self._stream)


def _end_reading(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # already closed
        connection.shutdown(socket.SHUT_RD)
