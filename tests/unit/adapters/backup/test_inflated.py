"""A stream of gzip: no more of it is decompressed than is read."""

from __future__ import annotations

import gzip
import io
import secrets
import zlib

import pytest

from portal.adapters.backup.inflated import InflatingReader
from portal.adapters.backup.manifest import BadBackup


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 1_000_000])
@pytest.mark.parametrize("random", [True, False])
def test_there_and_back(size: int, random: bool) -> None:
    data = secrets.token_bytes(size) if random else bytes(size)
    assert InflatingReader(io.BytesIO(gzip.compress(data))).read() == data


def test_only_what_is_read_is_decompressed() -> None:
    source = io.BytesIO(gzip.compress(bytes(90_000_000)) + b"never read")
    reader = InflatingReader(source)
    for _ in range(10):
        assert reader.read(1000) == bytes(1000)
    assert source.tell() == 65536


@pytest.mark.parametrize("cut", [1, 4, 8, 9, 500, 990])
def test_cut_off(cut: int) -> None:
    data = gzip.compress(secrets.token_bytes(1000))
    with pytest.raises(BadBackup, match="it is cut off"):
        InflatingReader(io.BytesIO(data[:-cut])).read()


@pytest.mark.parametrize("more", [b"\0", b"x", gzip.compress(b"more", mtime=0)])
def test_what_follows(more: bytes) -> None:
    for size in (10, 65_536 * 3):
        data = gzip.compress(secrets.token_bytes(size))
        with pytest.raises(BadBackup, match="it goes on after its end"):
            InflatingReader(io.BytesIO(data + more)).read()


def test_a_long_name_in_its_head_is_passed_over() -> None:
    data = gzip.compress(b"content")
    named = data[:3] + b"\x08" + data[4:10] + b"n" * 5_000_000 + b"\0" + data[10:]
    assert InflatingReader(io.BytesIO(named)).read() == b"content"


@pytest.mark.parametrize("place", range(0, 1020, 60))
def test_damaged(place: int) -> None:
    data = bytearray(gzip.compress(secrets.token_bytes(1000), mtime=0))
    data[place] ^= 0xFF
    try:
        InflatingReader(io.BytesIO(bytes(data))).read()
    except (zlib.error, BadBackup):
        return
    assert place in range(4, 10), "only the time, and the system that made it, are not checked"
