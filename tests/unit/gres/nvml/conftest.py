"""A session with a part of the GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.gres.conftest import UUID, Shim, Standin
from tests.unit.gres.nvml.sessions import SLICE


@pytest.fixture
def session(standin: Standin, shim: Callable[..., Shim]) -> Shim:
    """A quarter of the only GPU; no watchdog runs."""
    made = shim()
    made.grant((UUID.format(0), SLICE, 25))
    (made.directory / "load").unlink(missing_ok=True)
    return made
