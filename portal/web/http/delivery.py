"""Sends long responses without occupying a thread of gunicorn.

HAProxy takes a response only as fast as its client reads. One thread here sends the part that
exceeds HAProxy's buffer, for all connections. Otherwise a thread of gunicorn would wait until the
client has read, and then gunicorn's main loop 2 s for HAProxy to close.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from portal.web.http.wsgi_types import Environ, StartResponse, Wsgi

SHORT = 32768
"""Bytes; a response up to this size fits into HAProxy's buffer (`tune.bufsize`) with its head."""
AT_ONCE = 300
"""Responses in delivery, most with a file; a new one ends the oldest. 1024 open files are usual."""


class Delivery:
    """Hands long responses over to a single thread that sends all of them."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app
        self._sender = _Sender()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Handle one request."""
        connection = environ.get("gunicorn.socket")
        if not isinstance(connection, socket.socket) or environ["REQUEST_METHOD"] == "HEAD":
            return self._app(environ, start_response)
        length = 0

        def start(status: str, headers: list[tuple[str, str]], *error: Any) -> Any:
            nonlocal length
            length = max((int(v) for k, v in headers if k.lower() == "content-length"), default=0)
            return start_response(status, headers, *error)

        body = self._app(environ, start)
        return body if length <= SHORT else self._hand_over(body, connection)

    def _hand_over(self, body: Iterable[bytes], connection: socket.socket) -> Iterator[bytes]:
        yield b""  # gunicorn sends the head
        self._sender.add(_Response(_take(connection), iter(body), getattr(body, "close", _nothing)))


def _nothing() -> None:
    pass


def _take(connection: socket.socket) -> socket.socket:
    """Take a connection over from gunicorn, which is left with a closed one."""
    taken = socket.socket(fileno=os.dup(connection.fileno()))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.dup2(ours.fileno(), connection.fileno(), inheritable=False)
    taken.setblocking(False)
    return taken


@dataclass(eq=False)
class _Response:
    """The remaining parts of a response in delivery."""

    connection: socket.socket
    parts: Iterator[bytes]
    close_body: Callable[[], object]
    part: memoryview | bytes = b""

    def send(self) -> bool:
        """Send as much as is accepted; return whether some remains. Raises OSError."""
        while True:
            if not self.part:
                following = next(self.parts, None)
                if following is None:
                    return False
                self.part = memoryview(following)
            try:
                self.part = self.part[self.connection.send(self.part) :]
            except BlockingIOError:
                return True

    def close(self) -> None:
        """Close the connection and the file."""
        self.connection.close()
        self.close_body()


class _Sender:
    """The sending thread; starts with the first response, after gunicorn has forked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._selector: selectors.BaseSelector | None = None
        self._responses: deque[_Response] = deque()

    def add(self, response: _Response) -> None:
        """Send the rest of a response."""
        try:
            if not response.send():
                response.close()
                return
        except OSError:
            response.close()
            return
        with self._lock:
            self._make_room()
            self._responses.append(response)
            if self._selector is None:
                self._selector = selectors.EpollSelector()
                threading.Thread(target=self._run, args=(self._selector,), daemon=True).start()
            self._selector.register(response.connection, selectors.EVENT_WRITE, response)

    def _make_room(self) -> None:
        while len(self._responses) >= AT_ONCE:
            self._end(self._responses[0])

    def _end(self, response: _Response) -> None:
        if self._selector is not None and response in self._responses:
            self._responses.remove(response)
            self._selector.unregister(response.connection)
            response.close()

    def _run(self, selector: selectors.BaseSelector) -> None:
        while True:
            for key, _ in selector.select():
                with self._lock:
                    self._continue(key.data)

    def _continue(self, response: _Response) -> None:
        if response not in self._responses:  # dropped since the selector returned
            return
        unfinished = False
        with contextlib.suppress(Exception):  # a closed connection, or a file that cannot be read
            unfinished = response.send()
        if not unfinished:
            self._end(response)
