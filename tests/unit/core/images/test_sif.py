"""SIF files."""

from __future__ import annotations

import struct

import pytest

from portal.core.images.names import ImageError
from portal.core.images.sif import (
    LAUNCH,
    MOST_BYTES,
    architecture_code,
    primary_partition,
    without_times,
)
from portal.node.common.sif import DESCRIPTOR, HEADER
from tests.support.sif import sif

DIGEST = "ab" * 32


def test_the_system_partition_is_found() -> None:
    content = sif(b"squashfs", id=b"1" * 16, time=7)
    offset, size = primary_partition(content[:MOST_BYTES])
    assert content[offset : offset + size] == b"squashfs"


@pytest.mark.parametrize("head", [b"", b"x" * 200, sif(b"data", purpose=3)])
def test_other_files_are_refused(head: bytes) -> None:
    with pytest.raises(ImageError, match="SIF file"):
        primary_partition(head)


def test_a_header_that_points_outside_is_refused() -> None:
    content = bytearray(sif(b"data"))
    fields = list(HEADER.unpack_from(content))
    for start in (-5, 1 << 60):
        fields[9] = start
        HEADER.pack_into(content, 0, *fields)
        with pytest.raises(ImageError, match="no file system"):
            primary_partition(bytes(content))


def test_two_builds_have_the_same_header_afterwards() -> None:
    first, second = sif(b"data", id=b"1" * 16, time=7), sif(b"data", id=b"2" * 16, time=8)
    assert first != second
    fixed = without_times(first, DIGEST, 1000)
    assert fixed == without_times(second, DIGEST, 1000)
    assert fixed.startswith(LAUNCH)
    assert HEADER.unpack_from(fixed)[5:7] == (1000, 1000)
    place = HEADER.unpack_from(fixed)[9] + DESCRIPTOR.size
    assert DESCRIPTOR.unpack_from(fixed, place)[8:10] == (1000, 1000)
    assert primary_partition(fixed) == primary_partition(first)


def test_the_formats_sizes() -> None:
    assert (HEADER.size, DESCRIPTOR.size) == (128, 585)
    assert struct.calcsize("<ii") == 8


def test_machine_types() -> None:
    assert architecture_code("x86_64") == "2"
    with pytest.raises(ImageError, match="vax"):
        architecture_code("vax")
