"""Backup archives: their manifests, and the encryption of releases up to 0.2.0."""

from __future__ import annotations

import hashlib
import secrets
import struct
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from portal.adapters.backup import encrypted
from portal.adapters.backup.encrypted import MAGIC, PIECE
from portal.adapters.backup.manifest import FORMAT


def member(content: bytes) -> dict[str, Any]:
    return {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def manifest(**changes: Any) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "release": "7",
        "schema_revision": "0001",
        "made": "2026-11-25T00:00:00Z",
        "host": "portal.example.org",
        "database": "sqlite",
        "members": {"state/a": member(b"aaa")},
        **changes,
    }


def encrypt_as_release_0_2_0(data: bytes, passphrase: str = "secret") -> bytes:
    """Encrypt as releases up to 0.2.0 did."""
    salt = secrets.token_bytes(16)
    kdf = Scrypt(salt=salt, length=32, n=encrypted._COST, r=8, p=1)
    cipher, head = AESGCM(kdf.derive(passphrase.encode())), MAGIC + salt
    pieces = [data[start : start + PIECE] for start in range(0, len(data), PIECE)] or [b""]
    return head + b"".join(
        cipher.encrypt(struct.pack(">3xQB", number, number == len(pieces) - 1), piece, head)
        for number, piece in enumerate(pieces)
    )
