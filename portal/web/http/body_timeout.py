"""Limits how long a thread waits for a body: HAProxy buffers requests, except for long ones."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable

from portal.web.http.wsgi_types import Environ, StartResponse, Wsgi

WHOLE = 49152
"""Bytes; a body up to this size is complete when HAProxy forwards it (`held` in portal.cfg.j2)."""
SECONDS = 30.0
"""For the whole of a longer body. However slowly it arrives, the thread is free after that."""


class BodyTimeout:
    """Aborts a body that takes too long, by shutting down the read side of the connection."""

    def __init__(self, app: Wsgi, seconds: float = SECONDS) -> None:
        self._app = app
        self._seconds = seconds

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request."""
        connection = environ.get("gunicorn.socket")
        length = str(environ.get("CONTENT_LENGTH") or "0")
        whole = length.isdecimal() and int(length) <= WHOLE
        if whole or not isinstance(connection, socket.socket):
            return self._app(environ, start_response)
        # The response can still be written: only the read side is shut down.
        timer = threading.Timer(self._seconds, _end_reading, [connection])
        timer.daemon = True
        timer.start()
        try:
            return self._app(environ, start_response)
        finally:
            timer.cancel()


def _end_reading(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # already closed
        connection.shutdown(socket.SHUT_RD)
