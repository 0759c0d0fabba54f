"""Calls to runners over mutual TLS; hostile gateways delay nobody for long."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from portal.adapters import runner_client
from portal.adapters.certificates import CertificateAuthority, prepare_authorities
from portal.adapters.runner_client import GatewayRunners
from portal.core.session.session import Session, State
from portal.core.session_job.runner_protocol import StartRequest
from portal.errors import Unavailable

NOW = datetime(2026, 11, 20, tzinfo=UTC)
Answer = Callable[[socket.socket], None]
TERMINAL = StartRequest(
    name="terminal",
    script="#!/bin/sh\n",
    ready="/",
    timeout=60,
    kind="web",
    listen="unix",
    asked="",
    origin="https://terminal.example.org",
    busy="",
    busy_when="",
    session_name="calmotter12",
    env={},
)


class Gateway:
    """A session's gateway with a scripted response."""

    def __init__(self, folder: Path, authority: CertificateAuthority, answer: Answer) -> None:
        self.session = "b" * 32
        key, certificate = make_gateway(folder, authority, self.session)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._answer = answer
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.calls = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                plain, _ = self._server.accept()
            except OSError:
                return
            self.calls += 1
            threading.Thread(target=self._converse, args=(plain,), daemon=True).start()

    def _converse(self, plain: socket.socket) -> None:
        try:
            with self._context.wrap_socket(plain, server_side=True) as stream:
                stream.recv(65536)
                self._answer(stream)
        except OSError:
            pass

    def close(self) -> None:
        """Close the gateway."""
        self._server.close()

    def row(self, owner: str = "bob") -> Session:
        """The stored session."""
        return Session(
            id=self.session, name="x", owner=owner, environment="python", version="3.13", cpus=1,
            memory_mb=600, state=State.RUNNING, created=NOW, token_hash="x", submitted=NOW,
            address="127.0.0.1", port=self.port,
        )  # fmt: skip


def make_gateway(folder: Path, authority: CertificateAuthority, session: str) -> tuple[Path, Path]:
    """A key and a certificate issued by the portal, as a runner gets one."""
    key, request = folder / "gateway.key", folder / "gateway.csr"
    subprocess.run(
        ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-subj", "/CN=x", "-keyout", str(key), "-out", str(request)],
        check=True, capture_output=True,
    )  # fmt: skip
    certificate = folder / "gateway.crt"
    certificate.write_text(authority.sign_gateway(session, request.read_text()))
    return key, certificate


MakeGateway = Callable[[Answer], tuple[Gateway, GatewayRunners]]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeGateway]:
    prepare_authorities(tmp_path, "portal")
    authority = CertificateAuthority(tmp_path)
    made: list[Gateway] = []

    def build(answer: Answer) -> tuple[Gateway, GatewayRunners]:
        gateway = Gateway(tmp_path, authority, answer)
        made.append(gateway)
        return gateway, GatewayRunners(tmp_path)

    yield build
    for gateway in made:
        gateway.close()


def respond(text: bytes) -> Answer:
    """Respond at once."""
    return lambda stream: stream.sendall(text)


def drip(stream: socket.socket) -> None:
    """A byte now and then."""
    for _ in range(100):
        stream.sendall(b"H")
        time.sleep(0.1)


def flood(stream: socket.socket) -> None:
    """An endless response."""
    while True:
        stream.sendall(b"x" * 65536)


def test_valid_responses(make: MakeGateway) -> None:
    gateway, calls = make(respond(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"))
    calls.start_app(gateway.row(), TERMINAL)
    calls.stop_app(gateway.row(), "terminal")
    gateway, calls = make(respond(b"HTTP/1.1 503 No\r\n\r\n"))
    with pytest.raises(Unavailable, match="answered 503"):
        calls.start_app(gateway.row(), TERMINAL)


@pytest.mark.parametrize(
    "answer",
    [
        drip,
        flood,
        lambda _: time.sleep(5),
        respond(b""),
        respond(b"SSH-2.0\r\n"),
        respond(b"HTTP/1.1 2"),
    ],
)
def test_a_call_as_a_whole_has_one_deadline(
    make: MakeGateway, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_client, "SECONDS", 0.6)
    gateway, calls = make(answer)
    begun = time.monotonic()
    with pytest.raises(Unavailable):
        calls.start_app(gateway.row(), TERMINAL)
    assert time.monotonic() - begun < 2


def test_a_silent_session_holds_few_threads(
    make: MakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_client, "SECONDS", 3.0)
    gateway, calls = make(lambda _: time.sleep(8))
    begun = time.monotonic()

    def ask(_number: int) -> float:
        with pytest.raises(Unavailable):
            calls.start_app(gateway.row(), TERMINAL)
        return time.monotonic() - begun

    with ThreadPoolExecutor(24) as pool:
        seconds = sorted(pool.map(ask, range(24)))
    assert seconds[-4] < 2, seconds  # but for one running call and two that wait a moment
    assert gateway.calls <= 2
    with pytest.raises(Unavailable, match="Try again in"):
        calls.start_app(gateway.row(), TERMINAL)
