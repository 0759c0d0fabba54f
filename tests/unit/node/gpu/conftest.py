"""Fixtures for the tests of root's command on the nodes."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.node.gpu import memory


@pytest.fixture(autouse=True)
def mounted(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Recorded mounts: folder name and bytes. Only root can mount; test_memory.py really does."""
    found: list[tuple[str, int]] = []

    def mount(place: Path, size: int) -> None:
        found.append((place.name, size))

    monkeypatch.setattr(memory, "mount", mount)
    return found
