"""The rendered HAProxy configuration in a real HAProxy: who is let through, and with what."""

from __future__ import annotations

import http.client
import http.server
import json
import shutil
import socket
import socketserver
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jinja2 import Environment, StrictUndefined

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.routes import HaproxyRoutes
from portal.config import Settings
from portal.core.access import hash_secret
from tests.unit.web.conftest import TEMPLATES

pytestmark = pytest.mark.skipif(shutil.which("haproxy") is None, reason="needs haproxy")

SESSION = "5e5510" + "0" * 26
LABEL = "a1b2c3d4e5f6a7b8c9d0"
COOKIE = "a-long-random-value"
KEY = f"{LABEL}.{hash_secret(COOKIE)}"


class Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what reached it."""

    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        seen = {
            "who": self.server.who,  # type: ignore[attr-defined]
            "path": self.path,
            "headers": [[name.lower(), value] for name, value in self.headers.items()],
            "body": self.rfile.read(length).decode(),
        }
        content = json.dumps(seen).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Set-Cookie", "slipway_app=planted; Path=/")
        self.send_header("Set-Cookie", "own=1; Domain=localhost; Path=/")
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def address_string(self) -> str:
        """Unix sockets have no address."""
        return "-"


class PortalServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """The portal's place."""

    daemon_threads = True
    who = "portal"


class GatewayServer(http.server.ThreadingHTTPServer):
    """A session's gateway."""

    daemon_threads = True
    who = "app"
    names: list[str | None]


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: http.client.HTTPMessage
    text: str

    @property
    def seen(self) -> dict[str, Any]:
        """What the server behind saw."""
        return dict(json.loads(self.text))

    def sent(self, name: str) -> list[str]:
        """Values of a header that the server behind saw."""
        return [value for key, value in self.seen["headers"] if key == name]


@dataclass
class Front:
    """A running HAProxy with something behind it."""

    port: int
    runners_port: int
    routes: HaproxyRoutes
    gateway: GatewayServer
    ca: Path

    def ask(
        self, host: str, path: str = "/", method: str = "GET", body: str = "", **headers: str
    ) -> Answer:
        """Send one request; underscores in header names stand for dashes."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.raw(host, path, method, body, list(named.items()))

    def raw(
        self, host: str, path: str, method: str, body: str, headers: list[tuple[str, str]]
    ) -> Answer:
        """Send one request with exactly these headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", host)
        for name, value in headers:
            connection.putheader(name, value)
        if body:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body.encode())
        return _read(connection)

    def app(self, path: str = "/", method: str = "GET", **headers: str) -> Answer:
        """Ask at the app's origin, with its cookie."""
        cookie = headers.pop("cookie", f"slipway_app={COOKIE}")
        return self.ask(f"{LABEL}.localhost:{self.port}", path, method, cookie=cookie, **headers)


def _read(connection: http.client.HTTPConnection) -> Answer:
    response = connection.getresponse()
    answer = Answer(response.status, response.headers, response.read().decode())
    connection.close()
    return answer


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
    server.names = []
    context.sni_callback = lambda _socket, name, _context: server.names.append(name)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    return server


def render(settings: Settings) -> str:
    """The configuration, as `slipway render haproxy` writes it."""
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    text = (TEMPLATES / "haproxy" / "portal.cfg.j2").read_text()
    return environment.from_string(text).render(settings=settings) + "\n"


def make_settings(folder: Path, **web: object) -> Settings:
    """Settings whose state and sockets lie in a folder."""
    return Settings.model_validate(
        {
            "web": web,
            "state": {"directory": str(folder), "run": str(folder)},
            "sessions": {"templates": str(TEMPLATES)},
        }
    )


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """HAProxy between us, a portal and one session."""
    folder = tmp_path_factory.mktemp("front")
    ca = folder / "ca"
    prepare_authorities(ca, "portal")
    port, runners_port = _free_port(), _free_port()
    settings = make_settings(
        folder,
        public_url=f"http://localhost:{port}",
        listen=f"127.0.0.1:{port}",
        listen_runners=f"127.0.0.1:{runners_port}",
    )
    (folder / "routes.map").touch()
    (folder / "haproxy.cfg").write_text(render(settings))
    gateway = _gateway(ca, folder)
    portal = PortalServer(str(folder / "portal.sock"), Echo)
    for server in (portal, gateway):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    process = subprocess.Popen(["haproxy", "-db", "-q", "-f", str(folder / "haproxy.cfg")])
    try:
        _wait_for(port)
        routes = HaproxyRoutes(str(folder))
        routes.restore({})
        yield Front(port, runners_port, routes, gateway, ca)
    finally:
        process.terminate()
        process.wait()
        for server in (portal, gateway):
            server.shutdown()
            server.server_close()


def _wait_for(port: int) -> None:
    for _ in range(100):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("HAProxy did not start")


@pytest.fixture
def route(front: Front) -> Iterator[str]:
    """The way to the app, open."""
    target = f"127.0.0.1@{front.gateway.server_port}@jupyterlab.{SESSION}.slipway"
    front.routes.add(KEY, target)
    yield target
    front.routes.remove(KEY)


def test_the_portals_host_leads_to_the_portal(front: Front) -> None:
    answer = front.ask(f"localhost:{front.port}", "/sessions", X_Slipway_Frontend="runners",
                       X_Forwarded_For="6.6.6.6", X_Forwarded_User="root", Forwarded="for=x",
                       Remote_User="root")  # fmt: skip
    assert answer.seen["who"] == "portal"
    assert answer.sent("x-slipway-frontend") == []
    assert answer.sent("x-forwarded-user") == []
    assert answer.sent("remote-user") == []
    assert answer.sent("forwarded") == []
    assert answer.sent("x-forwarded-for") == ["127.0.0.1"]


@pytest.mark.parametrize("host", ["evil.example.org", "localhost.evil.org", "a.b.localhost", ""])
def test_other_hosts_lead_nowhere(front: Front, host: str) -> None:
    assert front.ask(host).status in (400, 404)


def test_the_address_by_number_leads_to_the_right_name(front: Front) -> None:
    answer = front.ask(f"127.0.0.1:{front.port}", "/sessions")
    assert answer.status == 301
    assert answer.headers["Location"] == f"http://localhost:{front.port}/sessions"
    health = front.ask(f"127.0.0.1:{front.port}", "/healthz")
    assert health.sent("host") == ["localhost"]


def test_call_backs_come_in_on_their_own_side_only(front: Front) -> None:
    assert front.ask(f"localhost:{front.port}", "/runner/v1/sessions/x/ready").status == 404
    context = ssl.create_default_context(cafile=str(front.ca / "gateway_ca.pem"))

    def call(path: str) -> Answer:
        connection = http.client.HTTPSConnection("portal", front.runners_port, context=context)
        plain = socket.create_connection(("127.0.0.1", front.runners_port))
        connection.sock = context.wrap_socket(plain, server_hostname="portal")
        connection.request("GET", path)
        return _read(connection)

    assert call("/runner/v1/x").sent("x-slipway-frontend") == ["runners"]
    assert call("/sessions").status == 404


def test_a_good_cookie_leads_to_the_app(front: Front, route: str) -> None:
    answer = front.app("/lab?a=1")
    assert (answer.seen["who"], answer.seen["path"]) == ("app", "/lab?a=1")
    assert front.gateway.names[-1] == f"jupyterlab.{SESSION}.slipway"


def test_no_secret_reaches_the_app(front: Front, route: str) -> None:
    jar = f"theme=dark; slipway_app={COOKIE}; _xsrf=2|x; slipway=portal; __Host-slipway=p; z=1"
    answer = front.app(cookie=jar, X_Forwarded_User="root", X_Real_IP="6.6.6.6")
    assert answer.sent("cookie") == ["theme=dark; _xsrf=2|x; z=1"]
    assert answer.sent("x-forwarded-user") == []
    assert answer.sent("x-real-ip") == []
    assert COOKIE not in answer.text
    first = front.app(cookie=f"slipway_app={COOKIE}; theme=dark")
    assert first.sent("cookie") == ["theme=dark"]
    assert front.app().sent("cookie") == []


def test_header_names_in_disguise_are_dropped(front: Front, route: str) -> None:
    cookie = ("Cookie", f"slipway_app={COOKIE}")
    host = f"{LABEL}.localhost:{front.port}"
    answer = front.raw(host, "/", "GET", "", [cookie, ("X_Forwarded_User", "root")])
    assert "root" not in answer.text


def test_an_app_cannot_plant_our_cookie(front: Front, route: str) -> None:
    cookies = front.app().headers.get_all("Set-Cookie") or []
    assert not any("planted" in cookie or "omain" in cookie for cookie in cookies)
    assert any(cookie.startswith("own=1") for cookie in cookies)


@pytest.mark.parametrize(
    "cookie", ["", "slipway_app=wrong", "slipway_app=", f"other={COOKIE}", "slipway_app=1"]
)
def test_without_a_good_cookie_the_portal_answers(front: Front, route: str, cookie: str) -> None:
    assert front.app(cookie=cookie).seen["who"] == "portal"


def test_a_cookie_is_good_at_one_origin_only(front: Front, route: str) -> None:
    answer = front.ask(f"other.localhost:{front.port}", cookie=f"slipway_app={COOKIE}")
    assert answer.seen["who"] == "portal"


def test_our_own_pages_at_the_apps_origin(front: Front, route: str) -> None:
    answer = front.app("/.slipway/status")
    assert answer.seen["who"] == "portal"
    assert answer.sent("cookie") == [f"slipway_app={COOKIE}"]


def test_the_canary_is_no_key(front: Front) -> None:
    answer = front.ask(f"slipway.localhost:{front.port}", cookie="slipway_app=slipway")
    assert answer.seen["who"] == "portal"


def test_a_removed_route_is_shut_at_once(front: Front, route: str) -> None:
    assert front.app().seen["who"] == "app"
    front.routes.remove(KEY)
    assert front.app().seen["who"] == "portal"


def test_only_the_right_gateway_is_believed(front: Front, route: str) -> None:
    stranger = f"jupyterlab.{'f' * 32}.slipway"
    front.routes.add(KEY, f"127.0.0.1@{front.gateway.server_port}@{stranger}")
    answer = front.app()
    assert answer.status == 503
    assert "does not answer" in answer.text


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize(
    ("origin", "passes"),
    [
        ("http://{label}.localhost:{port}", True),
        ("http://{label}.localhost", False),
        ("https://{label}.localhost:{port}", False),
        ("http://localhost:{port}", False),
        ("http://{label}.localhost:{port}.evil.org", False),
        ("null", False),
        (None, False),
    ],
)
def test_origins(front: Front, route: str, method: str, origin: str | None, passes: bool) -> None:
    headers = {}
    if method == "GET":
        headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
        headers |= {"Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Sec-WebSocket-Version": "13"}
    if origin is not None:
        headers["Origin"] = origin.format(label=LABEL, port=front.port)
    # A POST without an Origin is no browser's; a WebSocket without one is refused all the same.
    expected = passes or (origin is None and method == "POST")
    assert (front.app(method=method, **headers).status == 200) is expected


@pytest.mark.parametrize(
    "web",
    [
        {},
        {"public_url": "https://slipway.example.org", "apps_domain": "apps.example.org",
         "tls_certificate": "{ca}/server.pem"},
    ],
)  # fmt: skip
def test_haproxy_takes_the_configuration_without_a_warning(
    front: Front, tmp_path: Path, web: dict[str, str]
) -> None:
    shutil.copytree(front.ca, tmp_path / "ca")
    (tmp_path / "routes.map").touch()
    filled = {key: value.format(ca=front.ca) for key, value in web.items()}
    (tmp_path / "haproxy.cfg").write_text(render(make_settings(tmp_path, **filled)))
    command = ["haproxy", "-c", "-f", str(tmp_path / "haproxy.cfg")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
