"""Signing requests and TLS handshakes."""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

SESSION = "a" * 32


def signing_request(file: Path, name: str = "anything") -> str:
    """A signing request; its key is written to the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    built = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return built.public_bytes(serialization.Encoding.PEM).decode()


def handshake(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """Connect the two over a socket pair; raises the client's or the server's error."""
    ours, theirs = socket.socketpair()
    failures: list[Exception] = []

    def serve() -> None:
        try:
            with server.wrap_socket(theirs, server_side=True) as connection:
                connection.recv(1)
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=name) as connection:
            connection.sendall(b"x")
    finally:
        ours.close()
        thread.join()
    if failures:
        raise failures[0]
