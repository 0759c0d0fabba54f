"""Files of the authority that signs users' SSH certificates.

`user_ca` signs; `user_ca.next` will sign once the login node trusts it (rotation.py);
`user_ca.pub` has the trust lines for the login node.
"""

from __future__ import annotations

import socket
from datetime import UTC, datetime
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from portal.adapters.private_files import write


def new_user_key() -> bytes:
    """A new private key in OpenSSH's format."""
    return ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )


def load_user_key(file: Path) -> ed25519.Ed25519PrivateKey:
    """Load a current or next signing key of users' certificates."""
    key = serialization.load_ssh_private_key(file.read_bytes(), None)
    assert isinstance(key, ed25519.Ed25519PrivateKey)  # noqa: S101  # we wrote it ourselves
    return key


def trust_line(directory: Path, file: str) -> str:
    """The line of TrustedUserCAKeys for a key; the comment has its date and host."""
    encoding, format_ = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    public = load_user_key(directory / file).public_key().public_bytes(encoding, format_).decode()
    trusted = directory / "user_ca.pub"
    lines = trusted.read_text(encoding="utf-8").splitlines() if trusted.exists() else []
    for line in lines:
        if line.startswith(f"{public} "):
            return line
    created = datetime.fromtimestamp((directory / file).stat().st_mtime, UTC)
    return f"{public} slipway {created:%Y-%m-%d} {socket.gethostname()}"


def write_trust_lines(directory: Path) -> None:
    """Write user_ca.pub: a line for the signing key, and for the next key if it exists."""
    files = [name for name in ("user_ca", "user_ca.next") if (directory / name).exists()]
    lines = "".join(f"{trust_line(directory, name)}\n" for name in files)
    write(directory / "user_ca.pub", lines.encode(), mode=0o644)
