"""A real HAProxy with the rendered configuration, between a test, a fake portal and one session."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import os
import random
import select
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.haproxy.routes import HaproxyRoutes
from portal.cli.render import haproxy_config
from portal.config import Settings, WebSettings
from portal.config.web import RUNNERS_SOCKET
from portal.core.apps.origins import Mode
from portal.core.auth.person import hash_secret
from portal.errors import Unavailable
from tests.support.paths import TEMPLATES

SESSION = "5e5510" + "0" * 26
COOKIE = "a-long-random-value"
POOL = 4
"""Ports for apps, and as many for SSH."""
FIRST_PORT, PORTS = 20000, 12000
SSH = b"SSH-2.0-"


NextAnswer = tuple[int, dict[str, str], Callable[[], object]]
"""Status and headers of an answer, and what is done before."""


class Echo(http.server.BaseHTTPRequestHandler):
    """Responds with the received request."""

    protocol_version = "HTTP/1.1"
    raw_requestline: bytes
    server: PortalServer | GatewayServer

    def _answer(self) -> None:
        if isinstance(self.server, PortalServer) and self.server.next_answers:
            self._answer_as(self.server, *self.server.next_answers.pop(0))
            return
        if self.server.closes:
            self.server.closes -= 1
            self.close_connection = True
            return
        if self.headers.get("Upgrade") == "echo":
            self._echo()
            return
        if isinstance(self.server, PortalServer):
            self.server.noted.append(self.requestline)
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length).decode()
        pause = float(self.headers.get("X-Pause", 0))
        if pause and select.select([self.connection], [], [], pause)[0]:
            self.server.left.set()  # nothing follows such a request but the client's end
            self.close_connection = True
            return
        seen = {
            "who": self.server.who,
            "path": self.requestline.split(" ")[1],  # self.path has lost a leading slash
            "headers": [[name.lower(), value] for name, value in self.headers.items()],
            "body": body,
        }
        content = json.dumps(seen).encode()
        redirects = getattr(self.server, "redirects", False)
        self.send_response(302 if redirects else int(self.headers.get("X-Status", 200)))
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Set-Cookie", "slipway_app=planted; Path=/")
        self.send_header("Set-Cookie", "slipway_app_10001=planted; Path=/")
        self.send_header("Set-Cookie", "own=1; Domain=localhost; Path=/")
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Service-Worker-Allowed", "/")
        if self.server.who == "portal":
            self.send_header("X-Slipway-Body", "read")
        for name, value in json.loads(self.headers.get("X-Answer", "{}")).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _answer_as(
        self,
        server: PortalServer,
        status: int,
        own: dict[str, str],
        before: Callable[[], object],
    ) -> None:
        before()
        headers = "".join(f"{name.lower()}: {value}\n" for name, value in self.headers.items())
        server.requests.append(f"{self.command} {self.path}\n{headers}")
        self.send_response(status)
        for name, value in own.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _echo(self) -> None:
        """Echo the following data, as over a WebSocket."""
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", str(self.headers["Upgrade"]))
        self.end_headers()
        self.close_connection = True
        while data := self.connection.recv(65536):
            self.connection.sendall(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_PROPFIND = _answer  # noqa: N815

    def parse_request(self) -> bool:
        """Read a request; clients of SSH begin with the name of their protocol."""
        self.raw_requestline = self.raw_requestline.removeprefix(SSH)
        return super().parse_request()

    def log_message(self, *args: Any) -> None:
        """Log nothing."""

    def address_string(self) -> str:
        """Unix sockets have no address."""
        return "-"


class PortalServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Stands in for the portal."""

    daemon_threads = True
    who = "portal"
    closes = 0
    left = threading.Event()

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.next_answers: list[NextAnswer] = []
        """What the next requests are answered with."""
        self.requests: list[str] = []
        """Those that were answered so."""
        self.noted: list[str] = []
        """The request lines that it has got."""


class GatewayServer(http.server.ThreadingHTTPServer):
    """A session's gateway."""

    daemon_threads = True
    who = "app"
    names: list[str | None]
    redirects = False
    """Whether it answers with redirects."""
    closes = 0
    """How many of the next requests get no answer."""
    left: threading.Event
    """Set once a client has left before its answer."""


@dataclass
class Answer:
    """A response."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def seen(self) -> dict[str, Any]:
        """The request as seen by the server."""
        return dict(json.loads(self.text))

    def sent(self, name: str) -> list[str]:
        """Values of a header as seen by the server."""
        return [value for key, value in self.seen["headers"] if key == name]


@dataclass
class Front:
    """A running HAProxy with servers behind it."""

    web: WebSettings
    label: str
    """Label of the only app."""
    port: int
    app_port: int
    runners_port: int
    routes: HaproxyRoutes
    gateway: GatewayServer
    portal: PortalServer
    ca: Path
    process: subprocess.Popen[bytes]
    hub_port: int = 0
    """Where JupyterHub's proxy connects."""
    watch_port: int = 0
    """Where Prometheus connects."""

    def watched(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Send a request to the listener for monitoring."""
        connection = http.client.HTTPConnection("127.0.0.1", self.watch_port, timeout=10)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=named)
        return read(connection)

    @property
    def origin(self) -> str:
        """The app's own origin."""
        return self.web.app_url(self.label)

    @property
    def key(self) -> str:
        """The key of the app's route, for the browser with the cookie."""
        return f"{self.label}.{hash_secret(COOKIE)}"

    @property
    def target(self) -> str:
        """The target of that route."""
        return f"127.0.0.1@{self.gateway.server_port}@jupyterlab.{SESSION}.slipway"

    @property
    def cookie(self) -> str:
        """The cookie that opens the app."""
        return f"{self.web.app_cookie(self.label)}={COOKIE}"

    def ask(
        self, host: str, path: str = "/", method: str = "GET", body: str = "", **headers: str
    ) -> Answer:
        """Send a request to the portal's port; underscores in header names stand for dashes."""
        return self._ask(self.port, host, path, method, body, **headers)

    def hub(self, path: str, method: str = "GET", **headers: str) -> Answer:
        """Send a request as JupyterHub's proxy does."""
        return self._ask(self.hub_port, "hub.example.org", path, method, "", **headers)

    def connect_hub(self) -> socket.socket:
        """A connection of JupyterHub's proxy."""
        return socket.create_connection(("127.0.0.1", self.hub_port), 10)

    def app(self, path: str = "/", method: str = "GET", **headers: str) -> Answer:
        """Send a request to the app's origin, with its cookie."""
        headers = {"cookie": self.cookie} | headers
        host = headers.pop("host", urlsplit(self.origin).netloc)
        return self._ask(self.app_port, host, path, method, "", **headers)

    def _ask(
        self, port: int, host: str, path: str, method: str, body: str, **headers: str
    ) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.raw(host, path, method, body, list(named.items()), port)

    def raw(
        self,
        host: str,
        path: str,
        method: str,
        body: str,
        headers: list[tuple[str, str]],
        port: int | None = None,
    ) -> Answer:
        """Send a request with exactly these headers."""
        connection = http.client.HTTPConnection("127.0.0.1", port or self.port, timeout=10)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host)
        for name, value in headers:
            connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode())
        return read(connection)


class Stream:
    """A connection that stays open, like a WebSocket's; at a port for SSH, like one of SSH."""

    def __init__(
        self,
        front: Front,
        port: int | None = None,
        cookie: str | None = None,
        source: str = "127.0.0.1",
    ) -> None:
        place = ("127.0.0.1", port or front.app_port)
        self._socket = socket.create_connection(place, 10, (source, 0))
        first, last = front.web.ssh_ports
        host = urlsplit(front.origin).netloc
        lines = ["GET /ws HTTP/1.1", f"Host: {host}", f"Origin: {front.origin}"]
        lines += [f"Cookie: {front.cookie if cookie is None else cookie}"]
        lines += ["Connection: Upgrade", "Upgrade: echo", "", ""]
        greeting = SSH if first <= place[1] <= last else b""
        self._socket.sendall(greeting + "\r\n".join(lines).encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            answer += self._socket.recv(1) or b"closed\r\n\r\n"
        self.opened = b" 101 " in answer
        if not self.opened:
            self.close()

    def echoes(self, text: bytes = b"still here") -> bool:
        """Whether sent data is echoed."""
        try:
            self._socket.sendall(text)
            return self._socket.recv(len(text)) == text
        except OSError:
            return False

    def ended(self) -> bool:
        """Whether it is closed within seconds."""
        with self._socket:
            try:
                return self._socket.recv(1) == b""
            except TimeoutError:
                return False
            except OSError:
                return True

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def read(connection: http.client.HTTPConnection) -> Answer:
    response = connection.getresponse()
    answer = Answer(response.status, response.headers, response.read().decode())
    connection.close()
    return answer


def free_ports(count: int) -> int:
    """The first of `count` consecutive free ports, from a range of this process's own.

    The range is below the ephemeral ports and separate from those of parallel test processes, so
    that a free port stays free.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = PORTS // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        first = FIRST_PORT + number * share + random.randrange(share - count)
        with contextlib.ExitStack() as probes, contextlib.suppress(OSError):
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first


def _gateway(ca: Path, folder: Path) -> GatewayServer:
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    pem = request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    (folder / "gateway.pem").write_text(CertificateAuthority(ca).sign_gateway(SESSION, pem))
    (folder / "gateway.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(ca / "client_ca.pem"))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(folder / "gateway.pem", folder / "gateway.key")
    server = GatewayServer(("127.0.0.1", 0), Echo)
    server.names, server.left = [], threading.Event()
    context.sni_callback = lambda _socket, name, _context: server.names.append(name)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


def render(settings: Settings) -> str:
    """The configuration, as written by `slipway render haproxy`."""
    return haproxy_config(settings)


def make_settings(
    folder: Path,
    hub_port: int = 0,
    watch_port: int = 0,
    *,
    several: bool = False,
    proof: str = "",
    **web: object,
) -> Settings:
    """Settings whose state and sockets are in a folder; others may connect on loopback.

    `several`: the portal has several hosts. `proof`: JupyterHub's file.
    """
    return Settings.model_validate(
        {
            "web": web,
            "hub": {"listen": f"127.0.0.1:{hub_port}", "front_end_token_file": proof}
            if hub_port
            else {},
            "monitoring": {"listen": f"127.0.0.1:{watch_port}"} if watch_port else {},
            "state": {
                "directory": str(folder),
                "run": str(folder),
                "hosts": "several" if several else "one",
            },
            "sessions": {"templates": str(TEMPLATES)},
        }
    )


@contextmanager
def running_front(
    folder: Path, mode: Mode = "ports", *, several: bool = False, proof: str = "", **web: object
) -> Iterator[Front]:
    """HAProxy between the test, a portal and one session; further web settings can be given."""
    ca = folder / "ca"
    prepare_authorities(ca, "portal")
    port = free_ports(4 + 2 * POOL)
    runners_port, hub_port, watch_port, first = port + 1, port + 2, port + 3, port + 4
    settings = make_settings(
        folder,
        hub_port,
        watch_port,
        several=several,
        proof=proof,
        listen=f"127.0.0.1:{port}",
        listen_runners=f"127.0.0.1:{runners_port}",
        apps=mode,
        apps_ports=(first, first + POOL - 1),
        ssh_ports=(first + POOL, first + 2 * POOL - 1),
        **{"public_url": f"http://localhost:{port}"} | web,
    )
    for name in ("routes.map", "background.map", "hub.map"):
        (folder / name).touch()
    (folder / "haproxy.cfg").write_text(render(settings))
    gateway = _gateway(ca, folder)
    portal = PortalServer(str(folder / "portal.sock"), Echo)
    (folder / RUNNERS_SOCKET).symlink_to("portal.sock")
    for server in (portal, gateway):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    argv = ["haproxy", "-W", "-db", "-q", "-S", str(folder / "master.sock")]
    process = subprocess.Popen([*argv, "-f", str(folder / "haproxy.cfg")])
    try:
        routes = HaproxyRoutes(str(folder))
        wait_for_haproxy(routes, process)
        routes.set_complete(routes.generation())
        label = str(first) if mode == "ports" else "a1b2c3d4e5f6a7b8c9d0"
        app_port = first if mode == "ports" else port
        yield Front(
            settings.web, label, port, app_port, runners_port, routes, gateway, portal, ca, process,
            hub_port, watch_port,
        )  # fmt: skip
    finally:
        process.terminate()
        process.wait()
        for server in (portal, gateway):
            server.shutdown()
            server.server_close()


def wait_for_haproxy(routes: HaproxyRoutes, process: subprocess.Popen[bytes]) -> None:
    # Not by its port, where the HAProxy of another test could respond.
    for _ in range(200):
        assert process.poll() is None, "HAProxy did not start"
        with contextlib.suppress(Unavailable):
            routes.is_lost()
            return
        time.sleep(0.05)
    raise AssertionError("HAProxy did not start")
