"""The portal as the client of file servers: theirs may be anybody's port, or say anything."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.adapters.certificates import CertificateAuthority
from portal.adapters.files.host import CONNECT_SECONDS, SshFileServers
from portal.adapters.ssh.command import Completed
from portal.core.files.server import FileReply, FileRequest, FileServer, NoReply, StartOrder
from portal.errors import Unavailable
from tests.support.file_servers import authorities
from tests.support.transports import NoTransport

ID, OTHER_ID = "0123456789abcdef", "fedcba9876543210"
LIST = FileRequest("GET", "/v1/list/home")
ORDER = StartOrder(ID, "", "", {}, (50000, 50010), 15.0, 48.0)
Serve = Callable[[socket.socket], None]


@pytest.fixture
def client() -> SshFileServers:
    return SshFileServers(NoTransport(), "slipway", authorities())


class Listener:
    """Whoever has the port: each connection is served in a thread of its own."""

    def __init__(self, serve: Serve) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._serve = serve
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def server(self) -> FileServer:
        """Alice's file server, as far as the portal knows."""
        port = self._socket.getsockname()[1]
        return FileServer("alice", ID, "127.0.0.1", port, datetime(2026, 11, 26, tzinfo=UTC))

    def _accept(self) -> None:
        while True:
            try:
                stream, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def close(self) -> None:
        """Close the port."""
        self._socket.close()


def silent(stream: socket.socket) -> None:
    """Accept, and say nothing."""
    with stream:
        time.sleep(CONNECT_SECONDS + 3)


def reset(stream: socket.socket) -> None:
    """Reset the connection, in the middle of the handshake."""
    stream.recv(1)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


def plain_http(stream: socket.socket) -> None:
    """Another protocol."""
    with stream:
        stream.recv(65536)
        stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


def with_certificate(folder: Path, id: str, body: bytes = b"{}") -> Serve:
    """A file server with a certificate of the portal's for this id."""
    file = folder / f"{id}.pem"
    file.write_text(CertificateAuthority(authorities()).issue_gateway(id))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    def serve(plain: socket.socket) -> None:
        try:
            with context.wrap_socket(plain, server_side=True) as stream:
                stream.recv(65536)
                stream.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
        except OSError:
            pass

    return serve


@pytest.fixture
def listening() -> Iterator[Callable[[Serve], FileServer]]:
    opened: list[Listener] = []

    def listen(serve: Serve) -> FileServer:
        opened.append(Listener(serve))
        return opened[-1].server

    yield listen
    for each in opened:
        each.close()


def test_an_answer(
    client: SshFileServers, listening: Callable[[Serve], FileServer], tmp_path: Path
) -> None:
    server = listening(with_certificate(tmp_path, ID, b'{"total": 1}'))
    assert client.ask(server, LIST) == FileReply(200, {"total": 1})


@pytest.mark.parametrize("serve", [silent, reset, plain_http])
def test_whoever_does_not_prove_to_be_the_server_is_none(
    client: SshFileServers, listening: Callable[[Serve], FileServer], serve: Serve
) -> None:
    """Its owner is not slowed down, since it may be another user who has the port."""
    server = listening(serve)
    for _ in range(3):
        begun = time.monotonic()
        assert client.ask(server, LIST) is NoReply.SILENT
        assert time.monotonic() - begun < CONNECT_SECONDS + 1


def test_another_certificate_is_another_server(
    client: SshFileServers, listening: Callable[[Serve], FileServer], tmp_path: Path
) -> None:
    """Bob's own file server has one of the portal's, too."""
    server = listening(with_certificate(tmp_path, OTHER_ID))
    assert client.ask(server, LIST) is NoReply.ENDED


def test_nobody_at_the_port(client: SshFileServers) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as once:
        port = once.getsockname()[1]
    server = FileServer("alice", ID, "127.0.0.1", port, datetime(2026, 11, 26, tzinfo=UTC))
    assert client.ask(server, LIST) is NoReply.ENDED


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"[]",
        b"nonsense",
        b'{"size": NaN}',
        b'{"size": 1e999}',
        b'{"name": "\\ud800"}',
        b'{"name": "\xff"}',
    ],
    ids=["lists", "objects", "list", "text", "nan", "infinite", "surrogate", "latin-1"],
)
def test_an_answer_that_makes_no_sense(
    client: SshFileServers,
    listening: Callable[[Serve], FileServer],
    tmp_path: Path,
    body: bytes,
) -> None:
    """A user's file server may be changed by its user."""
    server = listening(with_certificate(tmp_path, ID, body))
    with pytest.raises(Unavailable, match="makes no sense"):
        client.ask(server, LIST)


class LoginNode:
    """A transport on which every command prints the same, as soon as it may."""

    def __init__(self, printed: bytes) -> None:
        self.printed = printed
        self.released = threading.Event()

    def run(
        self,
        user: str,
        argv: Sequence[str],
        stdin: bytes = b"",
        seconds: float = 20.0,
        most: int = 0,
    ) -> Completed:
        """Wait, and end."""
        self.released.wait(seconds)
        return Completed(0, self.printed, "")


def test_a_server_that_still_runs_is_not_replaced() -> None:
    node = LoginNode(b'\0{"running": "%b"}' % ID.encode())
    node.released.set()
    host = SshFileServers(node, "slipway", authorities())
    with pytest.raises(Unavailable, match="do not answer"):
        host.start("alice", replace(ORDER, unless=ID))


@pytest.mark.parametrize(
    "printed", [b"", b"\0", b'\0{"port": 1}', b"\0" + b"[" * 100_000, b'\0{"running": ""}']
)
def test_a_start_without_an_answer(printed: bytes) -> None:
    node = LoginNode(printed)
    node.released.set()
    with pytest.raises(Unavailable, match="gave no answer"):
        SshFileServers(node, "slipway", authorities()).start("alice", ORDER)
