"""The server: mutual TLS, one thread for each connection, and which handler answers what."""

from __future__ import annotations

import hashlib
import os
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from socketserver import TCPServer, ThreadingMixIn

from portal.node.file_server import contents, entries
from portal.node.file_server.archives.handlers import send_archive
from portal.node.file_server.dav import dav
from portal.node.file_server.errors import Refused, no_such
from portal.node.file_server.http import Places, Request
from portal.node.file_server.location import Location, parse
from portal.node.file_server.operations import handlers as operations
from portal.node.file_server.operations.manager import Operations
from portal.node.file_server.operations.records import Records
from portal.node.file_server.roots import STORAGE, Root, Roots
from portal.node.file_server.state import state_folders
from portal.node.file_server.storage import handlers as storage
from portal.node.file_server.storage.quota import quota_of
from portal.node.file_server.storage.shares import Shares
from portal.node.file_server.tree import handlers as trees
from portal.node.file_server.tree.usage import Usage
from portal.node.file_server.uploads import tus
from portal.node.file_server.uploads.records import Store
from portal.node.file_server.uploads.uploads import Uploads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any


CONTROL, WRITE, READ = "control", "files", "read"
"""Names under which clients connect, before ".<id>.slipway": the portal, and HAProxy for
browsers and programs that may change something, or not."""
BACKLOG = 128
CLEANING_SECONDS = 3600.0


@dataclass(frozen=True)
class Order:
    """What the portal tells a server at its start."""

    id: str
    """Random; part of the server's name in its certificate."""
    certificate: str
    """PEM of the private key and the certificate."""
    client_ca: str
    """PEM of the authority of the only clients."""
    roots: Mapping[str, str]
    """Paths by the root's name."""
    ports: tuple[int, int] = (0, 0)
    idle_minutes: float = 15.0
    upload_hours: float = 48.0
    shared: str = ""
    """Where a user's storage folders are, as in the site's settings: with {user}, or relative to
    the home directory."""
    quota: Mapping[str, str] = field(default_factory=dict)
    """By the root's name, how quota is asked for (storage/quota.py)."""
    unless: str = ""
    """The id of a server that is not replaced if it still runs."""

    @property
    def scope(self) -> str:
        """Names the servers of this host and portal, of which one runs at a time."""
        return hashlib.sha256(f"{socket.gethostname()} {self.client_ca}".encode()).hexdigest()[:12]


class FileServer(ThreadingMixIn, TCPServer):
    """Answers the portal and its HAProxy until nobody has asked for some time."""

    daemon_threads = True
    address_family = socket.AF_INET6
    request_queue_size = BACKLOG
    allow_reuse_address = False

    def __init__(self, order: Order, listener: socket.socket) -> None:
        super().__init__(listener.getsockname(), Request, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self._order = order
        self._context = tls(order)
        self.places = Places()
        self._used = time.monotonic()
        self._busy = 0
        self._lock = threading.Lock()
        self.roots = roots_of(order)
        self._cleaning: threading.Thread | None = None
        self._next_cleaning = 0.0
        self.deadlines = self.roots.deadlines
        self.uploads = uploads_of(order, self.roots)
        records = Records(order.roots.get("home"), order.scope)
        self.operations = Operations(self.roots, self.deadlines, records)
        self.usage = Usage(self.roots)
        self.shares = Shares(self.roots)

    def get_request(self) -> tuple[socket.socket, Any]:
        """Accept a connection; the TLS handshake follows in its own thread."""
        plain, address = super().get_request()
        return self._context.wrap_socket(
            plain, server_side=True, do_handshake_on_connect=False
        ), address

    def verify_request(self, request: Any, client_address: object) -> bool:
        """Take every connection; another one may have to go."""
        self.places.enter(request)
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
            self.places.leave(request)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that go away or do not authenticate."""

    def service_actions(self) -> None:
        """End after some time without use; clean up at the start and every hour."""
        self._clean()
        with self._lock:
            working = self.operations.is_busy or self.usage.is_busy or self.shares.busy()
            if self._busy or working:
                self._used = time.monotonic()
            unused = time.monotonic() - self._used > self._order.idle_minutes * 60
        if unused:
            # serve_forever() must have ended before shutdown() returns.
            threading.Thread(target=self.shutdown).start()

    def _clean(self) -> None:
        now = time.monotonic()
        if now < self._next_cleaning or (self._cleaning and self._cleaning.is_alive()):
            return
        self._next_cleaning = now + CLEANING_SECONDS
        self._cleaning = threading.Thread(target=self.uploads.clean, daemon=True)
        self._cleaning.start()

    def answer(self, request: Request) -> None:
        """Answer one request; raises Refused or OSError."""
        with self._lock:
            self._busy += 1
        try:
            name = getattr(request.request, "slipway_name", "")
            kind, _, rest = name.partition(".")
            if rest != f"{self._order.id}.slipway":
                raise no_such()
            request.read_only = kind == READ
            (self._control if kind == CONTROL else self._data)(request)
        finally:
            with self._lock:
                self._busy -= 1
                self._used = time.monotonic()

    def reach(self, location: Location) -> None:
        """Raise Refused if the file system does not answer; the rest is done in this thread."""
        self.deadlines.call(location.root, lambda: self.roots.probe(location))

    # What the portal asks

    def _control(self, request: Request) -> None:
        _, version, action, *rest = request.route.split("/", 3)
        call = self._actions.get((request.command, action)) if version == "v1" else None
        if call is None:
            raise no_such()
        call(self, request, parse(rest[0]) if rest and rest[0] else Location(""))

    def _list(self, request: Request, location: Location) -> None:
        query = request.query
        request.reply_json(
            self.deadlines.call(location.root, lambda: entries.listing(self.roots, location, query))
        )

    def _entry(self, request: Request, location: Location) -> None:
        request.reply_json(
            self.deadlines.call(location.root, lambda: entries.entry(self.roots, location))
        )

    def _make_folder(self, request: Request, location: Location) -> None:
        made = self.deadlines.call(location.root, lambda: entries.make_folder(self.roots, location))
        request.reply_json(made, 201)

    def _list_uploads(self, request: Request, location: Location) -> None:
        request.reply_json({"uploads": self.uploads.unfinished()})

    def _remove_upload(self, request: Request, location: Location) -> None:
        self.uploads.remove(location.root, request.connection)
        request.reply(204)

    def _list_shares(self, request: Request, location: Location) -> None:
        self.reach(location)
        request.reply_json(self.shares.listing(location))

    def _compare_shares(self, request: Request, location: Location) -> None:
        self.reach(Location(STORAGE))
        storage.compare(self.roots, request)

    def _share(self, request: Request, location: Location) -> None:
        self.reach(location)
        storage.share(self.shares, request, location)

    def _take_back(self, request: Request, location: Location) -> None:
        self.reach(location)
        storage.take_back(self.shares, request, location)

    def _quota(self, request: Request, location: Location) -> None:
        request.reply_json(quota_of(self.roots.get(location.root), self._order.quota))

    def _ping(self, request: Request, location: Location) -> None:
        request.reply_json({"id": self._order.id, "pid": os.getpid()})

    _actions: Mapping[tuple[str, str], Callable[[FileServer, Request, Location], None]] = {
        ("GET", "ping"): _ping,
        ("GET", "list"): _list,
        ("GET", "entry"): _entry,
        ("POST", "folder"): _make_folder,
        ("GET", "uploads"): _list_uploads,
        ("DELETE", "uploads"): _remove_upload,
        ("POST", "operations"): operations.start,
        ("GET", "operations"): operations.show,
        ("DELETE", "operations"): operations.cancel,
        ("POST", "rename"): operations.rename_one,
        ("GET", "usage"): trees.show_usage,
        ("GET", "search"): trees.find,
        ("GET", "shares"): _list_shares,
        ("POST", "shares"): _compare_shares,
        ("PUT", "shares"): _share,
        ("DELETE", "shares"): _take_back,
        ("GET", "quota"): _quota,
    }

    # What browsers and programs ask through HAProxy

    def _data(self, request: Request) -> None:
        _, _, area, *rest = request.route.split("/", 3)
        reads = area == "archive" or request.command in ("GET", "HEAD", "OPTIONS", "PROPFIND")
        if request.read_only and not reads:
            raise Refused(403, "permission", "This token was created without “files:write”.")
        if area == "uploads":
            tus.answer(self.uploads, request, rest[0] if rest else "")
            return
        if area == "dav":
            self.reach(parse(rest[0] if rest else ""))
            dav.answer(self.roots, request, rest[0] if rest else "")
            return
        if area not in ("files", "archive") or not rest:
            raise no_such()
        location = parse(rest[0])
        self.reach(location)
        if area == "archive" and request.command in ("GET", "HEAD", "POST"):
            send_archive(self, request, location)
        elif area == "archive":
            raise Refused(405, "method", "This address can only be read.")
        elif request.command in ("GET", "HEAD"):
            contents.send_file(self.roots, location, request)
        elif request.command == "PUT":
            contents.receive_file(self.roots, location, request)
        elif request.command == "DELETE":
            contents.remove_file(self.roots, location, request)
        else:
            raise Refused(405, "method", "This address does not accept that kind of request.")


def roots_of(order: Order) -> Roots:
    """The directories that an order gives access to."""
    named = {name: Root(name, path) for name, path in order.roots.items()}
    return Roots(named, order.shared)


def uploads_of(order: Order, roots: Roots) -> Uploads:
    """The user's uploads."""
    return Uploads(roots, Store(state_folders(order.roots, "uploads")), order.upload_hours)


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
