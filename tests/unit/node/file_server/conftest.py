"""A real file server with mutual TLS on loopback, in a thread of the test's process."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Any

import pytest

from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.node.file_server import state
from portal.node.file_server.daemon import listen
from portal.node.file_server.order import Order
from portal.node.file_server.server import FileServer

ID = "0123456789abcdef"


class _Named(HTTPSConnection):
    """A connection that asks for a name, as HAProxy does by `sni`."""

    def __init__(self, port: int, context: ssl.SSLContext, name: str) -> None:
        super().__init__("127.0.0.1", port, context=context, timeout=20)
        self._name, self._tls = name, context

    def connect(self) -> None:
        super(HTTPSConnection, self).connect()
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


@dataclass
class Answer:
    """A response that was read completely."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """The portal, or HAProxy on behalf of a browser."""

    def __init__(self, server: FileServer, ca: Path, kind: str, id: str = ID) -> None:
        context = ssl.create_default_context(cafile=str(ca / "gateway_ca.pem"))
        context.load_cert_chain(str(ca / "client.pem"))
        port = server.socket.getsockname()[1]
        self.connection = _Named(port, context, f"{kind}.{id}.slipway")

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request; a body that is no bytes is sent as JSON."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        self.connection.request(method, path, data, headers or {})
        found: HTTPResponse = self.connection.getresponse()
        return Answer(found.status, dict(found.getheaders()), found.read())


@pytest.fixture(scope="session")
def ca(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ca")
    prepare_authorities(folder, "portal")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The user's home directory, with a folder for storage."""
    folder = tmp_path / "home"
    (folder / "storage" / "data").mkdir(parents=True)
    return folder


@pytest.fixture
def server(
    ca: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FileServer]:
    monkeypatch.setattr(state, "private_folder", lambda: str(tmp_path / "private"))
    roots = {"home": str(home), "storage": str(home / "storage")}
    authority = CertificateAuthority(ca)
    quota = {"home": "df", "storage": "none"}
    order = Order(
        ID,
        authority.issue_gateway(ID),
        authority.client_ca(),
        roots,
        shared=f"{home.parent}/{{user}}/storage",
        quota=quota,
    )
    running = FileServer(order, listen((0, 0)))
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield running
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def client(server: FileServer, ca: Path) -> Iterator[Callable[[str], Client]]:
    """Make a client that connects as "control", "files" or "read"."""
    made: list[Client] = []

    def make(kind: str) -> Client:
        made.append(Client(server, ca, kind))
        return made[-1]

    yield make
    for each in made:
        each.connection.close()


@pytest.fixture
def control(client: Callable[[str], Client]) -> Client:
    """The portal."""
    return client("control")


@pytest.fixture
def data(client: Callable[[str], Client]) -> Client:
    """A browser that may read and write, behind HAProxy."""
    return client("files")


PROXY = """\
global
    maxconn 200
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server {seconds}s
frontend browsers
    bind {address}
    http-request set-header X-Forwarded-Proto http
    default_backend files
backend files
    server files 127.0.0.1:{port} ssl crt {ca}/client.pem ca-file {ca}/gateway_ca.pem \
verify required sni str(files.{id}.slipway)
"""


@contextlib.contextmanager
def run_proxy(server: FileServer, ca: Path, config: Path, seconds: int) -> Iterator[str]:
    """Run HAProxy in front of the server; yields its URL. `seconds`: how long it waits."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    port = server.socket.getsockname()[1]
    config.write_text(PROXY.format(address=address, port=port, ca=ca, id=ID, seconds=seconds))
    running = subprocess.Popen(["haproxy", "-db", "-q", "-f", str(config)])
    host, number = address.split(":")
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection((host, int(number))).close()
            break
        except ConnectionRefusedError:
            assert running.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
    yield f"http://{address}"
    running.kill()
    running.wait()


@pytest.fixture
def proxy(server: FileServer, ca: Path, tmp_path: Path) -> Iterator[str]:
    """HAProxy in front of the server, as it is for browsers and programs; its URL."""
    with run_proxy(server, ca, tmp_path / "haproxy.cfg", 30) as url:
        yield url
