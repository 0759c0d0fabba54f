"""Encrypts a stream with a passphrase: scrypt, then AES-256-GCM for each piece of it.

A piece's nonce contains its number and whether it is the last one: exchanged, repeated or missing
pieces are detected at decryption. Each file has its own key, since its salt is random.
"""

from __future__ import annotations

import io
import secrets
import struct
from typing import IO

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

MAGIC = b"slipway-encrypted-backup-1\n"
PIECE = 1024 * 1024
_SALT = 16
_TAG = 16
_COST, _BLOCK, _PARALLEL = 2**16, 8, 1
"""64 MiB of memory, and some tenths of a second, for each guess of a passphrase."""


class NotDecrypted(Exception):
    """The passphrase is wrong, or the file is damaged."""


def _cipher(passphrase: str, salt: bytes) -> AESGCM:
    kdf = Scrypt(salt=salt, length=32, n=_COST, r=_BLOCK, p=_PARALLEL)
    return AESGCM(kdf.derive(passphrase.encode()))


def _nonce(number: int, last: bool) -> bytes:
    return struct.pack(">3xQB", number, last)


class EncryptingWriter(io.RawIOBase):
    """Encrypts written data; the file is complete only after `finish`."""

    def __init__(self, target: IO[bytes], passphrase: str) -> None:
        salt = secrets.token_bytes(_SALT)
        self._target = target
        self._cipher = _cipher(passphrase, salt)
        self._number = 0
        self._waiting = bytearray()
        self._head = MAGIC + salt
        target.write(self._head)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: object, /) -> int:
        """Encrypt data; the last piece is buffered until `finish`."""
        piece = bytes(data)  # type: ignore[call-overload]  # the base class says Buffer
        self._waiting += piece
        while len(self._waiting) > PIECE:
            self._put(bytes(self._waiting[:PIECE]), last=False)
            del self._waiting[:PIECE]
        return len(piece)

    def finish(self) -> None:
        """Write the last piece."""
        self._put(bytes(self._waiting), last=True)
        self._waiting.clear()

    def _put(self, piece: bytes, last: bool) -> None:
        self._target.write(self._cipher.encrypt(_nonce(self._number, last), piece, self._head))
        self._number += 1


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
