"""Encrypted backups of releases up to 0.2.0: what was changed, cut off or exchanged is refused."""

from __future__ import annotations

import base64
import io
import secrets

import pytest

from portal.adapters.backup.encrypted import MAGIC, PIECE, DecryptingReader
from portal.adapters.backup.gpg import NotDecrypted
from tests.support.backup_archives import encrypt_as_release_0_2_0

HEAD = len(MAGIC) + 16
SEALED = PIECE + 16
RECORDED = (
    "c2xpcHdheS1lbmNyeXB0ZWQtYmFja3VwLTEKN+PpwQRn0C0FN1OYh9Ue"
    "1zhZTSq2BaY6J4nX+OhXoDPaskLfrZ0Hz/cAiTIu+NFkYKwJ7ObcCN8q"
)
"""Written by release 0.2.0."""


def test_a_stream_of_release_0_2_0() -> None:
    raw = base64.b64decode(RECORDED)
    assert unseal(raw, "correct horse battery") == b"a backup of release 0.2.0"
    with pytest.raises(NotDecrypted):
        unseal(raw, "correct horse batterY")


def unseal(sealed: bytes, passphrase: str = "secret") -> bytes:
    return DecryptingReader(io.BytesIO(sealed), passphrase).read() or b""


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
def test_there_and_back(size: int) -> None:
    data = secrets.token_bytes(size)
    sealed = encrypt_as_release_0_2_0(data)
    assert unseal(sealed) == data
    assert data[:50] not in sealed or size < 2


def test_another_passphrase() -> None:
    with pytest.raises(NotDecrypted):
        unseal(encrypt_as_release_0_2_0(b"data"), "Secret")


def test_whatever_is_changed_is_noticed() -> None:
    data = secrets.token_bytes(3 * PIECE)
    sealed = encrypt_as_release_0_2_0(data)
    first, second = sealed[HEAD : HEAD + SEALED], sealed[HEAD + SEALED : HEAD + 2 * SEALED]
    rest = sealed[HEAD + 2 * SEALED :]
    head = sealed[:HEAD]
    broken = {
        "cut between pieces": head + first + second,
        "cut in a piece": sealed[:-1],
        "exchanged": head + second + first + rest,
        "repeated": head + first + first + second + rest,
        "left out": head + first + rest,
        "only the head": head,
        "head cut": head[:-1],
        "something appended": sealed + b"x",
        "another salt": head[:-1] + bytes([head[-1] ^ 1]) + sealed[HEAD:],
        "a bit": sealed[: HEAD + 5] + bytes([sealed[HEAD + 5] ^ 1]) + sealed[HEAD + 6 :],
    }
    for what, wrong in broken.items():
        with pytest.raises(NotDecrypted):
            pytest.fail(f"{what}: {len(unseal(wrong))} bytes")


def test_memory_is_bounded() -> None:
    """Of ten pieces, one or two are in memory."""

    class Counted(io.BytesIO):
        asked = 0

        def read(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            Counted.asked = max(Counted.asked, size)
            return super().read(size)

    source = Counted(encrypt_as_release_0_2_0(bytes(10 * PIECE)))
    reader = DecryptingReader(source, "secret")
    assert reader.read(10) == bytes(10)
    assert source.tell() <= HEAD + 2 * SEALED
    assert Counted.asked <= SEALED
