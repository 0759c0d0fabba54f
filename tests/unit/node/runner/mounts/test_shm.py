"""Shared memory: mounted as requested, or an explanation why it cannot be."""

from __future__ import annotations

import errno
import os

import pytest

from portal.node.runner.mounts import namespace
from portal.node.runner.mounts.namespace import Namespace, NotGranted
from portal.node.runner.mounts.shm import resize
from portal.node.runner.spec import SharedMemory


class Kernel:
    """Replaces the C library; tests/slurm measures the real thing inside a session."""

    def __init__(self, refused: str = "") -> None:
        self.refused = refused
        self.calls: list[tuple[object, ...]] = []

    def _call(self, name: str, *arguments: object) -> int:
        self.calls.append((name, *arguments))
        return -1 if name == self.refused else 0

    def unshare(self, flags: int) -> int:
        return self._call("unshare", flags)

    def mount(self, *arguments: object) -> int:
        return self._call("mount", *arguments)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The maps that were written."""
    files: list[str] = []
    monkeypatch.setattr(namespace, "_map_identity", lambda *ids: files.append(str(ids)))
    monkeypatch.setattr("ctypes.get_errno", lambda: errno.EPERM)
    return files


def use(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: kernel)


def test_it_has_the_requested_size(monkeypatch: pytest.MonkeyPatch, written: list[str]) -> None:
    kernel = Kernel()
    use(monkeypatch, kernel)
    resize(Namespace(), SharedMemory(64, must=True))
    assert [call[0] for call in kernel.calls] == ["unshare", "mount", "mount"]
    assert kernel.calls[2][-1] == b"size=64m,mode=1777"
    assert kernel.calls[2][2] == b"/dev/shm"
    assert written == [str((os.getuid(), os.getgid()))]


def test_without_a_request_nothing_is_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Kernel("unshare"))
    resize(Namespace(), None)


@pytest.mark.parametrize("refused", ["unshare", "mount"])
def test_a_node_that_refuses(
    monkeypatch: pytest.MonkeyPatch,
    written: list[str],
    capfd: pytest.CaptureFixture[str],
    refused: str,
) -> None:
    use(monkeypatch, Kernel(refused))
    with pytest.raises(NotGranted, match="64 MB"):
        resize(Namespace(), SharedMemory(64, must=True))
    resize(Namespace(), SharedMemory(300, must=False))
    assert "keeps the size it has" in "".join(capfd.readouterr())
