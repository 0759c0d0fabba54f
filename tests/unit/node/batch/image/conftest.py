"""SIF files for tests: a header that Apptainer would write, and some data."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from portal.node.batch.image import sif
from portal.node.common.sif import _ARCHITECTURES
from tests.support.registries import FakeRegistry, registry

CODES = {name: code.encode() for code, name, _ in _ARCHITECTURES}


def make_sif(
    architecture: str = "",
    data: bytes = b"x" * 100,
    said: int | None = None,
    id: bytes = b"i" * 16,
) -> bytes:
    """A SIF file; `said`: the size of its data according to its header."""
    begin = b"#!/usr/bin/env run-singularity\n".ljust(32, b"\0") + b"SIF_MAGIC\0" + b"01\0"
    begin += CODES[architecture or sif.architecture()] + b"\0" + id
    size = len(data) if said is None else said
    numbers = struct.pack("<8q", 0, 0, 48, 48, 128, 0, 128, size)
    return begin + numbers + data


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with registry() as found:
        yield found
