"""The server: mutual TLS, one thread for each connection, and its lifetime."""

from __future__ import annotations

import functools
import os
import socket
import ssl
import threading
import time
from socketserver import TCPServer, ThreadingMixIn

from portal.node.file_server import control, data
from portal.node.file_server.errors import no_such
from portal.node.file_server.http import Connections, Request
from portal.node.file_server.user_files import UserFiles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from portal.node.file_server.order import Order

CONTROL, WRITE, READ = "control", "files", "read"
"""Server names that clients request (SNI), followed by ".<id>.slipway": the portal; HAProxy for
browsers and programs that may write; HAProxy for those that may only read."""
BACKLOG = 128
CLEANING_SECONDS = 3600.0
RECOVERY_SECONDS = 2.0
"""How long the first requests wait for that; afterwards it goes on beside them."""


class FileServer(ThreadingMixIn, TCPServer):
    """Answers the portal and its HAProxy, and ends after some time without requests."""

    daemon_threads = True
    address_family = socket.AF_INET6
    request_queue_size = BACKLOG
    allow_reuse_address = False

    def __init__(self, order: Order, listener: socket.socket) -> None:
        self.connections = Connections()
        handler = functools.partial(Request, answer=self.answer, connections=self.connections)
        super().__init__(listener.getsockname(), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.files = UserFiles(order)
        self._order = order
        self._context = tls(order)
        self._used = time.monotonic()
        self._busy = 0
        self._lock = threading.Lock()
        self._next_cleaning = 0.0
        self._cleaning: threading.Thread | None = None
        self._clean()
        if self._cleaning is not None:  # a killed server can have left a file half written
            self._cleaning.join(RECOVERY_SECONDS)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; the TLS handshake follows in its own thread."""
        plain, address = super().get_request()
        return self._context.wrap_socket(
            plain, server_side=True, do_handshake_on_connect=False
        ), address

    def verify_request(self, request: Any, client_address: object) -> bool:
        """Accept every connection; this may close an older one."""
        self.connections.enter(request)
        return True

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        try:
            super().shutdown_request(request)
        except (OSError, ValueError):
            request.close()

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Handle a connection to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.leave(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Log nothing about clients that disconnect or do not authenticate."""

    def service_actions(self) -> None:
        """Clean up every hour; end after some time without use."""
        self._clean()
        with self._lock:
            if self._busy or self.files.is_busy():
                self._used = time.monotonic()
            unused = time.monotonic() - self._used > self._order.idle_minutes * 60
        if unused and not self.files.locks:
            # serve_forever() must have ended before shutdown() returns.
            threading.Thread(target=self.shutdown).start()

    def _clean(self) -> None:
        now = time.monotonic()
        if now < self._next_cleaning or (self._cleaning and self._cleaning.is_alive()):
            return
        self._next_cleaning = now + CLEANING_SECONDS
        self._cleaning = threading.Thread(target=self.files.uploads.clean, daemon=True)
        self._cleaning.start()

    def answer(self, request: Request) -> None:
        """Answer one request; raises Refused or OSError."""
        with self._lock:
            self._busy += 1
        try:
            name = getattr(request.request, "slipway_name", "")
            kind, _, suffix = name.partition(".")
            if suffix != f"{self._order.id}.slipway":
                raise no_such()
            request.read_only = kind == READ
            answer = control.answer if kind == CONTROL else data.answer
            answer(self.files, request)
        finally:
            with self._lock:
                self._busy -= 1
                self._used = time.monotonic()


def tls(order: Order) -> ssl.SSLContext:
    """The TLS context: only clients with a certificate of the portal's authority."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=order.client_ca)
    # Not in a file, which could be on a file system that is full or away.
    with os.fdopen(os.memfd_create("certificate", os.MFD_CLOEXEC), "w") as file:
        file.write(order.certificate)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")

    def note_name(connection: Any, name: str | None, _context: ssl.SSLContext) -> None:
        connection.slipway_name = (name or "").lower()

    context.sni_callback = note_name
    return context
