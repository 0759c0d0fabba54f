"""How long a thread waits for a body: HAProxy hands over whole requests, except for long ones."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterable

from portal.web.http.wsgi_types import Environ, StartResponse, Wsgi

WHOLE = 49152
"""Bytes: a body up to here is complete when HAProxy hands it over (`held` in portal.cfg.j2)."""
SECONDS = 30.0
"""For all of a longer one. However slowly it drips, the thread is free again after that."""


class BodyTimeout:
    """Gives up a body that takes too long, by ending the reading side of its connection."""

    def __init__(self, app: Wsgi, seconds: float = SECONDS) -> None:
        self._app = app
        self._seconds = seconds

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        connection = environ.get("gunicorn.socket")
        length = str(environ.get("CONTENT_LENGTH") or "0")
        whole = length.isdecimal() and int(length) <= WHOLE
        if whole or not isinstance(connection, socket.socket):
            return self._app(environ, start_response)
        # The answer can still be written: only reading ends.
        timer = threading.Timer(self._seconds, _end_reading, [connection])
        timer.daemon = True
        timer.start()
        try:
            return self._app(environ, start_response)
        finally:
            timer.cancel()


def _end_reading(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is over already
        connection.shutdown(socket.SHUT_RD)
