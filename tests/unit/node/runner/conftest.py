"""Fixtures of the runner's tests: a private directory with a short path, and a fake portal."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator

import pytest

from portal.node.runner.spec import Spec, parse_spec
from tests.support.runner_portal import FakePortal, spec_text


@pytest.fixture
def directory() -> Iterator[str]:
    """A directory for unix sockets, whose paths are limited to 107 characters."""
    path = tempfile.mkdtemp(prefix="slipway-")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def authorities(tmp_path_factory: pytest.TempPathFactory) -> FakePortal:
    """The keys and certificates of a portal, created once."""
    return FakePortal(tmp_path_factory.mktemp("portal"))


@pytest.fixture
def portal(authorities: FakePortal) -> Iterator[FakePortal]:
    """A portal on loopback."""
    authorities.reset()
    yield authorities.up()
    authorities.down()


@pytest.fixture
def spec(portal: FakePortal) -> Spec:
    """The spec of a session of that portal, with a short heartbeat."""
    return parse_spec(spec_text(portal, heartbeat_seconds=0.2))
