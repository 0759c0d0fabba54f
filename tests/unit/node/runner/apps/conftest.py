"""Fixtures of this folder's tests."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from portal.node.runner.apps import app as apps
from portal.node.runner.apps import netns
from tests.support.runner_apps import NETWORKED, NetworkedApp, WatchedApp, wait_until


@pytest.fixture
def watched(directory: str) -> Iterator[WatchedApp]:
    watched = WatchedApp(directory)
    yield watched
    watched.app.stop(0)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> int:
    """The app's port; unlike the usual one it is free outside."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    monkeypatch.setattr(netns, "PORT", number)
    return number


@pytest.fixture
def networked(directory: str, port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[NetworkedApp]:
    monkeypatch.setenv("HOME", directory)
    networked = NetworkedApp(directory)
    yield networked
    networked.app.stop(0)
    wait_until(lambda: not list(apps.processes_of(NETWORKED)))
