"""Encryption of secret values in the database: AES-256-GCM with keys in separate files.

A sealed text is `v1:KEY:DATA`: the id of the key, so that several can be in use, and nonce and
ciphertext in Base64. The table and row of a text are its associated data (AAD), so that it cannot
be moved to another row. Keys are never written to the database or a log.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import secrets
import threading
from datetime import UTC, datetime
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from portal.errors import Unavailable

_FILE = re.compile(r"variables-([0-9a-f]{18})\.key")
_SEALED = re.compile(r"v1:([0-9a-f]{18}):([A-Za-z0-9+/=_-]+)")
_KEY_BYTES = 32
_NONCE_BYTES = 12


class Unreadable(Unavailable):
    """The key of a sealed text is missing or wrong."""


def is_sealed(text: str) -> bool:
    """Whether a text is sealed; texts from before the introduction of keys are plain."""
    return _SEALED.fullmatch(text) is not None


class Sealer:
    """Encrypts with the newest key, decrypts with any key."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._keys: dict[str, bytes] = {}

    def seal(self, text: str, aad: str) -> str:
        """Encrypt a text with its associated data; raises Unreadable without any key."""
        number, key = self._newest()
        nonce = secrets.token_bytes(_NONCE_BYTES)
        data = AESGCM(key).encrypt(nonce, text.encode(), _bound(number, aad))
        return f"v1:{number}:{base64.b64encode(nonce + data).decode()}"

    def open(self, sealed: str, aad: str) -> str:
        """Decrypt a text; raises Unreadable, also for other associated data."""
        match = _SEALED.fullmatch(sealed)
        if match is None:
            raise Unreadable("A stored value has a format unknown to this version of the portal.")
        number, key = match[1], self._key(match[1])
        try:
            raw = base64.b64decode(match[2], validate=True)
            clear = AESGCM(key).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _bound(number, aad))
        except (InvalidTag, ValueError, binascii.Error) as error:
            raise Unreadable(
                f"The portal's key {number} does not decrypt stored values of variables: it is not "
                "the key that encrypted them."
            ) from error
        return clear.decode()

    def is_current(self, sealed: str) -> bool:
        """Whether a text is sealed with the newest key."""
        return sealed.startswith(f"v1:{self._newest()[0]}:")

    def mark(self, text: str, number: str | None = None) -> str:
        """A keyed hash (MAC) of a text for comparisons; it reveals nothing without the key."""
        number, key = self._newest() if number is None else (number, self._key(number))
        digest = hmac.new(key, b"mark\0" + text.encode(), hashlib.sha256).digest()
        return f"v1:{number}:{base64.urlsafe_b64encode(digest).decode()}"

    def marks(self, mark: str, text: str) -> bool:
        """Whether a mark is this text's, in constant time."""
        match = _SEALED.fullmatch(mark)
        return match is not None and hmac.compare_digest(mark, self.mark(text, match[1]))

    def _newest(self) -> tuple[str, bytes]:
        with self._lock:
            if not self._keys:
                self._read()
            if not self._keys:
                raise Unreadable(
                    f"The portal has no key for the values of variables in {self._directory}. "
                    "An administrator can create one with `slipway init`, or restore the lost one."
                )
            return max(self._keys.items())

    def _key(self, number: str) -> bytes:
        with self._lock:
            if number not in self._keys:  # created since the keys were read
                self._read()
            if number in self._keys:
                return self._keys[number]
        raise Unreadable(
            f"The values of these variables cannot be read: the portal's key {number} is missing "
            f"in {self._directory}. An administrator can restore it; everything else works."
        )

    def _read(self) -> None:
        self._keys = read_keys(self._directory)


def read_keys(directory: Path) -> dict[str, bytes]:
    """The keys by their ids; files without a valid key are ignored."""
    keys = {}
    for file in directory.glob("variables-*.key") if directory.is_dir() else ():
        match = _FILE.fullmatch(file.name)
        try:
            key = bytes.fromhex(file.read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            continue
        if match and len(key) == _KEY_BYTES:
            keys[match[1]] = key
    return keys


def make_key(directory: Path) -> str:
    """Create a key, which becomes the newest; returns its id."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Ordered by time, so that the newest sorts last, and never reused: a lost key may be restored.
    last = max(read_keys(directory), default="0" * 18)
    stamp = max(int(f"{datetime.now(UTC):%Y%m%d%H%M%S}"), int(last[:14]) + 1)
    number = f"{stamp}{secrets.token_hex(2)}"
    file = directory / f"variables-{number}.key"
    draft = directory / f".{file.name}.{secrets.token_hex(4)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(secrets.token_hex(_KEY_BYTES))
        stream.flush()
        os.fsync(stream.fileno())
    draft.rename(file)
    return number


def _bound(number: str, aad: str) -> bytes:
    return f"slipway v1 {number} {aad}".encode()
