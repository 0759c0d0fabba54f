"""Public SSH keys that users add to their sessions, beside id_container."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass

from portal.errors import FieldError, InvalidRequest

FIELD = "public_key"
MAX_KEYS = 20
"""Keys per user."""
_TYPES = (
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)
_MIN_RSA_BYTES = 256
"""2048 bits; sshd accepts no shorter keys."""


@dataclass(frozen=True)
class PublicKey:
    """One public key in OpenSSH's format."""

    kind: str
    data: str
    """Base64."""
    comment: str

    @property
    def line(self) -> str:
        """The line of authorized_keys, without options."""
        return f"{self.kind} {self.data} {self.comment}".rstrip()

    @property
    def id(self) -> str:
        """SHA-256 of the key, hexadecimal."""
        return hashlib.sha256(base64.b64decode(self.data)).hexdigest()

    @property
    def fingerprint(self) -> str:
        """As printed by ssh-keygen -l: SHA256:…"""
        digest = hashlib.sha256(base64.b64decode(self.data)).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


def read_public_key(text: str) -> PublicKey:
    """The key in one line of a .pub file; raises InvalidRequest."""
    line = text.strip()
    if "PRIVATE KEY" in line:
        raise _wrong(
            "this is a private key, which nobody else may have; use the file that ends in .pub"
        )
    if not line.isascii() or not line.isprintable() or len(line) > 4000:
        raise _wrong("paste one line of printable ASCII characters: the content of one .pub file")
    words = line.split(maxsplit=2)
    if len(words) < 2 or words[0] not in _TYPES:
        raise _wrong("begin with the type of the key, such as ssh-ed25519; options are not allowed")
    if not _is_of_type(words[1], words[0]):
        raise _wrong("this is not a complete key; copy the whole line")
    return PublicKey(words[0], words[1], words[2][:100].strip() if len(words) > 2 else "")


def parse_public_keys(text: str) -> list[PublicKey]:
    """Parse the lines of a file; invalid lines and duplicates are skipped."""
    keys = {}
    for line in text.splitlines():
        try:
            key = read_public_key(line)
        except InvalidRequest:
            continue
        keys[key.id] = key
    return list(keys.values())


def _wrong(text: str) -> InvalidRequest:
    return InvalidRequest([FieldError(FIELD, text)])


def _is_of_type(data: str, kind: str) -> bool:
    """Whether these are the fields of a key of this type, in the format of RFC 4253."""
    try:
        raw = base64.b64decode(data, validate=True)
    except binascii.Error:
        return False
    fields = []
    while len(raw) >= 4:
        size = int.from_bytes(raw[:4], "big")
        if size > len(raw) - 4:
            return False
        fields.append(raw[4 : 4 + size])
        raw = raw[4 + size :]
    if raw or len(fields) < 2 or fields[0] != kind.encode():
        return False
    if kind == "ssh-rsa":
        return len(fields) == 3 and len(fields[2].lstrip(b"\0")) >= _MIN_RSA_BYTES
    return all(fields[1:]) and (kind != "ssh-ed25519" or len(fields[1]) == 32)
