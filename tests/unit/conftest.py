"""What all unit tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """Restore the umask, which commands set for their process."""
    before = os.umask(0o022)
    yield
    os.umask(before)
