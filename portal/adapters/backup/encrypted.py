"""Reads encrypted backups of releases up to 0.2.0. To be removed in release 1.0.

The key is derived by scrypt; each piece is encrypted with AES-256-GCM. A piece's nonce has its
number, and whether it is the last one: pieces that were exchanged, repeated or cut off do not
decrypt.
"""

from __future__ import annotations

import io
import struct
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from portal.adapters.backup.gpg import NotDecrypted

MAGIC = b"slipway-encrypted-backup-1\n"
PIECE = 1024 * 1024
_SALT = 16
_TAG = 16
_COST, _BLOCK, _PARALLEL = 2**16, 8, 1
"""64 MiB of memory, and some tenths of a second, for each guess of a passphrase."""


def _cipher(passphrase: str, salt: bytes) -> AESGCM:
    kdf = Scrypt(salt=salt, length=32, n=_COST, r=_BLOCK, p=_PARALLEL)
    return AESGCM(kdf.derive(passphrase.encode()))


def _nonce(number: int, last: bool) -> bytes:
    return struct.pack(">3xQB", number, last)


class DecryptingReader(io.RawIOBase):
    """Decrypts a stream; raises NotDecrypted, at the latest before its end is reached."""

    def __init__(self, source: IO[bytes], passphrase: str) -> None:
        self._head = source.read(len(MAGIC) + _SALT)
        if not self._head.startswith(MAGIC) or len(self._head) < len(MAGIC) + _SALT:
            raise NotDecrypted
        self._source = source
        self._cipher = _cipher(passphrase, self._head[len(MAGIC) :])
        self._number = 0
        self._sealed = source.read(PIECE + _TAG)
        self._clear = b""
        self._at_end = False

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: object, /) -> int:
        """Decrypt the next bytes."""
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # the base class says Buffer
        while not self._clear and not self._at_end:
            self._next()
        count = min(len(view), len(self._clear))
        view[:count], self._clear = self._clear[:count], self._clear[count:]
        return count

    def _next(self) -> None:
        next_piece = self._source.read(PIECE + _TAG)
        last = not next_piece
        try:
            nonce = _nonce(self._number, last)
            self._clear = self._cipher.decrypt(nonce, self._sealed, self._head)
        except InvalidTag:
            raise NotDecrypted from None
        self._sealed, self._number, self._at_end = next_piece, self._number + 1, last
