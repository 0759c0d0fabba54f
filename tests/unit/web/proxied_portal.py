"""A real HAProxy between browsers, a real gate and sessions whose apps serve their names."""

from __future__ import annotations

import http.client
import http.server
import json
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.haproxy.routes import HaproxyRoutes
from portal.config import Settings
from portal.core.apps.origins import Mode
from portal.web.app import create_app
from tests.support.fakes import FakeRoutes, World, make_world
from tests.support.paths import TEMPLATES
from tests.unit.web.front import free_ports, render, wait_for_haproxy

POOL = 6


class _Handler(WSGIRequestHandler):
    """Unix sockets have no addresses."""

    def setup(self) -> None:
        self.client_address = ("127.0.0.1", 0)
        super().setup()

    def address_string(self) -> str:
        return "-"

    def get_environ(self) -> dict[str, Any]:
        """With what gunicorn adds: the address as it was sent."""
        return super().get_environ() | {"RAW_URI": self.path}

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


class _Portal(socketserver.ThreadingMixIn, WSGIServer):
    """Stands in for gunicorn."""

    address_family = socketserver.socket.AF_UNIX  # type: ignore[attr-defined]
    daemon_threads = True

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "portal", 0
        self.setup_environ()


class _NameApp(http.server.BaseHTTPRequestHandler):
    """An app that serves the TLS name by which it was reached."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        content = json.dumps({"name": getattr(self.connection, "slipway_name", "")}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Answered-By", "app")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: Any) -> None:
        """Log nothing."""


class _Gateways:
    """The gateways of all sessions, on one port: the TLS name selects the session."""

    def __init__(self, ca: Path, folder: Path) -> None:
        self._ca, self._folder = ca, folder
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._key = ec.generate_private_key(ec.SECP256R1())
        (folder / "gateway.key").write_bytes(
            self._key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _NameApp)
        self.server.daemon_threads = True
        context = self._context("0" * 32)
        context.sni_callback = self._choose
        self.server.socket = context.wrap_socket(
            self.server.socket, server_side=True, do_handshake_on_connect=False
        )

    def _choose(self, connection: ssl.SSLObject, name: str | None, _old: ssl.SSLContext) -> None:
        session = (name or "").split(".")[1]
        if session not in self._contexts:
            self._contexts[session] = self._context(session)
        connection.context = self._contexts[session]
        connection.slipway_name = name  # type: ignore[attr-defined]

    def _context(self, session: str) -> ssl.SSLContext:
        request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
        signed = request.sign(self._key, hashes.SHA256())
        pem = signed.public_bytes(serialization.Encoding.PEM).decode()
        file = self._folder / f"{session}.pem"
        file.write_text(CertificateAuthority(self._ca).sign_gateway(session, pem))
        context = ssl.create_default_context(
            ssl.Purpose.CLIENT_AUTH, cafile=str(self._ca / "client_ca.pem")
        )
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(file, self._folder / "gateway.key")
        return context


@dataclass
class ProxiedPortal:
    """HAProxy, with servers for a portal and for sessions."""

    settings: Settings
    routes: HaproxyRoutes
    portal: _Portal
    gateway_port: int
    folder: Path
    worlds: list[World] = field(default_factory=list)

    def new_world(self) -> World:
        """A portal without sessions, behind the same HAProxy."""
        folder = self.folder / f"world{len(self.worlds)}"
        folder.mkdir()
        (folder / "secret_key").write_text("0" * 64)
        state = self.settings.state.model_copy(
            update={"database": f"sqlite:///{folder}/slipway.db", "directory": str(folder)}
        )
        settings = self.settings.model_copy(update={"state": state})
        self.routes.remove(*self.routes.entries())
        world = make_world(settings, cast(FakeRoutes, self.routes))
        self.portal.set_app(create_app(world.services))
        self.worlds.append(world)
        return world

    def get(self, origin: str, path: str, cookie: str = "") -> tuple[int, str, list[str]]:
        """Send a request to an app's origin: status, the responding app's name, cookies set."""
        place = urlsplit(origin)
        connection = http.client.HTTPConnection("127.0.0.1", place.port, timeout=10)
        headers = {"Host": place.netloc, "Accept": "application/json"}
        connection.request("GET", path, headers=headers | ({"Cookie": cookie} if cookie else {}))
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        by_app = answer.headers.get("X-Answered-By") == "app"
        name = str(json.loads(text)["name"]) if by_app else ""
        return answer.status, name, answer.headers.get_all("Set-Cookie") or []


@contextmanager
def running_portal(folder: Path, mode: Mode) -> Iterator[ProxiedPortal]:
    """HAProxy with the rendered configuration."""
    ca = folder / "ca"
    prepare_authorities(ca, "portal")
    first = free_ports(3 + POOL)
    web = {
        "public_url": f"http://localhost:{first}",
        "listen": f"127.0.0.1:{first}",
        "listen_runners": f"127.0.0.1:{first + 1}",
        "apps": mode,
        "apps_ports": (first + 3, first + 2 + POOL),
        "ssh_ports": (first + 2, first + 2),
        "ports_per_person": 4,
    }
    settings = Settings.model_validate(
        {
            "web": web,
            "state": {"directory": str(folder), "run": str(folder)},
            "sessions": {"templates": str(TEMPLATES)},
            "slurm": {"admins": ["admin"]},
        }
    )
    for name in ("routes.map", "background.map"):
        (folder / name).touch()
    (folder / "haproxy.cfg").write_text(render(settings))
    portal = _Portal(str(folder / "portal.sock"), _Handler)  # type: ignore[arg-type]
    gateways = _Gateways(ca, folder)
    for server in (portal, gateways.server):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    argv = ["haproxy", "-W", "-db", "-q", "-S", str(folder / "master.sock")]
    process = subprocess.Popen([*argv, "-f", str(folder / "haproxy.cfg")])
    try:
        routes = HaproxyRoutes(str(folder))
        wait_for_haproxy(routes, process)
        routes.set_complete(routes.generation())
        yield ProxiedPortal(settings, routes, portal, gateways.server.server_port, folder)
    finally:
        process.terminate()
        process.wait()
        for server in (portal, gateways.server):
            server.shutdown()
            server.server_close()
