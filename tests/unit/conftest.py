"""What all unit tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.support.file_servers import end_file_servers
from tests.unit.compiled import compile_once

compile_once()


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Restore the umask, which commands set for their process."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture(autouse=True)
def file_servers() -> Iterator[None]:
    """End the file servers of a test."""
    yield
    end_file_servers()
