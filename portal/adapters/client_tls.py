"""The portal as the client of gateways and file servers: whom it trusts, and who it is."""

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
    """TLS settings that follow the authorities' files, which a rotation replaces."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._read, self._context = self._load()

    def context(self) -> ssl.SSLContext:
        """The settings of now."""
        with self._lock:
            if self._versions() != self._read:
                self._read, self._context = self._load()
            return self._context

    def _versions(self) -> list[tuple[int, int]]:
        found = [(self._directory / name).stat() for name in FILES]
        return [(file.st_ino, file.st_mtime_ns) for file in found]

    def _load(self) -> tuple[list[tuple[int, int]], ssl.SSLContext]:
        versions = self._versions()  # before, so that a change meanwhile is read again
        trusted, own = (str(self._directory / name) for name in FILES)
        context = ssl.create_default_context(cafile=trusted)
        context.load_cert_chain(own)
        return versions, context


def new_only(directory: Path) -> ssl.SSLContext:
    """Settings of a portal without earlier authorities: who accepts it needs them no more."""
    pem = (directory / "gateway_ca.pem").read_bytes()
    context = ssl.create_default_context(cadata=_first(pem))
    own = (directory / "client.pem").read_bytes()
    key, _end, _rest = own.partition(b"-----BEGIN CERTIFICATE-----")
    with tempfile.NamedTemporaryFile(suffix=".pem") as file:  # 0600; the module reads only files
        file.write(key + _first(own).encode())
        file.flush()
        context.load_cert_chain(file.name)
    return context


def accepts(context: ssl.SSLContext, session: Session) -> bool:
    """Whether a session's gateway and the portal accept each other with these settings."""
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
            # Only now is it known whether the gateway accepts our certificate (TLS 1.3).
            return stream.recv(5) != b""
    except OSError:
        return False


def _first(pem: bytes) -> str:
    found = x509.load_pem_x509_certificates(pem)[0]
    return found.public_bytes(serialization.Encoding.PEM).decode()
