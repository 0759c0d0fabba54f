"""TLS of the portal as a client of gateways and file servers: trust and client certificate."""

from __future__ import annotations

import socket
import ssl
import tempfile
import threading
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from portal.core.apps.access import gateway_name
from portal.core.session.session import Session

FILES = ("gateway_ca.pem", "client.pem")
SECONDS = 5.0


class ClientTls:
    """A TLS context that is reloaded when a rotation replaces the authorities' files."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._loaded_versions, self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """The current TLS context."""
        with self._lock:
            if self._versions() != self._loaded_versions:
                self._loaded_versions, self._context = self._load()
            return self._context

    def _versions(self) -> list[tuple[int, int]]:
        statuses = [(self._directory / name).stat() for name in FILES]
        return [(status.st_ino, status.st_mtime_ns) for status in statuses]

    def _load(self) -> tuple[list[tuple[int, int]], ssl.SSLContext]:
        versions = self._versions()  # before loading, so that a concurrent change is detected
        trusted, client = (str(self._directory / name) for name in FILES)
        context = ssl.create_default_context(cafile=trusted)
        context.load_cert_chain(client)
        return versions, context


def context_after_rotation(directory: Path) -> ssl.SSLContext:
    """A TLS context without the earlier authorities, to find gateways that still need them."""
    pem = (directory / "gateway_ca.pem").read_bytes()
    context = ssl.create_default_context(cadata=_first(pem))
    client = (directory / "client.pem").read_bytes()
    key, _, _ = client.partition(b"-----BEGIN CERTIFICATE-----")
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # 0600; the module reads only files
        file.write(key + _first(client).encode())
        file.flush()
        context.load_cert_chain(file.name)
    return context


def accepts(context: ssl.SSLContext, session: Session) -> bool:
    """Whether a session's gateway and the portal accept each other with this context."""
    if session.address is None or session.port is None:
        return False
    name = gateway_name("control", session.id)
    try:
        with (
            socket.create_connection((session.address, session.port), SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=name) as stream,
        ):
            stream.settimeout(SECONDS)
            stream.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            # In TLS 1.3, only reading shows whether the gateway accepts the client certificate.
            return stream.recv(5) != b""
    except OSError:
        return False


def _first(pem: bytes) -> str:
    certificate = x509.load_pem_x509_certificates(pem)[0]
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
