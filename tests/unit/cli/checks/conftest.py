"""Fixtures of the checks' tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import paramiko
import pytest

from tests.unit.cli.checks.site import Site


@pytest.fixture
def site(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Site:
    """A site after `slipway init`."""
    return Site(tmp_path, capsys).init()


@pytest.fixture
def cleanup() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="session")
def host_keys() -> tuple[paramiko.PKey, paramiko.PKey]:
    """The login node's key, and another one."""
    return paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
