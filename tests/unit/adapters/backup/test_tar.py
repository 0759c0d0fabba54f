"""The tar file inside a backup: its sizes, also of files of 8 GiB and more."""

from __future__ import annotations

import io
import tarfile
from typing import Literal

import pytest

from portal.adapters.backup.manifest import BadBackup
from portal.adapters.backup.tar import TarReader

GIB = 1024**3
LARGE = 8 * GIB + 5
PIECE = bytes(1 << 24)


def records(text: bytes) -> bytes:
    """An extended header with this content, and a file after it."""
    info = tarfile.TarInfo("./PaxHeaders/a")
    info.type, info.size = tarfile.XHDTYPE, len(text)
    return (
        info.tobuf(tarfile.USTAR_FORMAT)
        + text
        + bytes(-len(text) % 512)
        + tarfile.TarInfo("a").tobuf(tarfile.USTAR_FORMAT)
    )


def of_tarfile(name: str, size: int, form: Literal[0, 1, 2]) -> bytes:
    """What Python's tarfile writes before a file."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(form)


@pytest.mark.parametrize("size", [0, 3, 8 * GIB - 1, 8 * GIB, LARGE, 2**50])
@pytest.mark.parametrize("form", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_sizes_as_tarfile_writes_them(size: int, form: Literal[0, 1, 2]) -> None:
    """The first is the form of backups; for 8 GiB and more it has an extended header."""
    written = of_tarfile("state/slipway.db", size, form)
    assert len(written) == (1536 if size >= 8 * GIB and form == tarfile.PAX_FORMAT else 512)
    assert TarReader(io.BytesIO(written)).next() == ("state/slipway.db", size)


class Parts(io.BytesIO):
    """A tar file of which only the pieces between the headers are asked for in whole."""

    def __init__(self, begin: bytes, zeros: int, end: bytes) -> None:
        super().__init__(begin)
        self._zeros, self._end = zeros, end

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None and 0 <= size <= len(PIECE)
        if (found := super().read(size)) or not size:
            return found
        if self._zeros:
            count = min(size, self._zeros)
            self._zeros -= count
            return PIECE[:count]
        self.write(self._end)
        self.seek(-len(self._end), io.SEEK_END)
        self._end = b""
        return super().read(size)


def test_a_file_of_more_than_8_gib_is_read_to_its_end() -> None:
    begin = of_tarfile("state/slipway.db", LARGE, tarfile.PAX_FORMAT)
    end = of_tarfile("etc/slipway.toml", 0, tarfile.PAX_FORMAT) + bytes(1024)
    tar = TarReader(Parts(begin, LARGE, bytes(-LARGE % 512) + end))
    assert tar.next() == ("state/slipway.db", LARGE)
    count = 0
    while piece := tar.read(len(PIECE)):
        count += len(piece)
    assert count == LARGE
    assert tar.next() == ("etc/slipway.toml", 0)
    assert tar.next() is None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"16 path=/etc/x1\n",
        b"19 size=8589934592\n16 path=/etc/x1\n",
        b"30 GNU.sparse.realsize=1000000\n",
        b"19 size=8589934593",
        b"20 size=8589934592\n",
        b"19 size=-858993459\n",
        b"19 size=08589934592",
        b"19 SIZE=8589934592\n",
        b"18 size=\xd9\xa1858993459\n",
        b"9 size=5\n",
        b"512 comment=" + b"x" * 499 + b"\n",
        b"600 comment=" + b"x" * 587 + b"\n",
    ],
)
def test_other_extended_headers(text: bytes) -> None:
    with pytest.raises(BadBackup, match="it has an extension header"):
        TarReader(io.BytesIO(records(text))).next()


def test_two_extended_headers() -> None:
    text = b"19 size=8589934592\n"
    both = records(text)[:1024] + records(text)
    with pytest.raises(BadBackup, match="not a regular file"):
        TarReader(io.BytesIO(both)).next()


def test_a_negative_size() -> None:
    block = bytearray(of_tarfile("a", 3, tarfile.GNU_FORMAT))
    block[124:136] = b"\xff" * 12
    block[148:156] = b"%06o\0 " % (sum(block[:148]) + sum(block[156:]) + 8 * 32)
    with pytest.raises(BadBackup, match="not a regular file"):
        TarReader(io.BytesIO(bytes(block))).next()


@pytest.mark.parametrize("place", range(0, 500, 7))
def test_a_damaged_header(place: int) -> None:
    block = bytearray(of_tarfile("a", 3, tarfile.PAX_FORMAT))
    block[place] ^= 0x21
    with pytest.raises(BadBackup, match="it is not a tar file"):
        TarReader(io.BytesIO(bytes(block))).next()
