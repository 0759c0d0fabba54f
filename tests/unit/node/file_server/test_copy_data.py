"""Bytes of one file: with the kernel's help and without."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.node.file_server.copy_data import copy_data


def refuse(number: int) -> Callable[..., int]:
    def call(*_: object) -> int:
        raise OSError(number, "refused")

    return call


def copied(tmp_path: Path, progress: Callable[[int], None] = lambda _: None) -> int:
    with open(tmp_path / "source", "rb") as source, open(tmp_path / "target", "wb") as target:
        return copy_data(source.fileno(), target.fileno(), progress)


@pytest.mark.parametrize("way", ["fast", "read", "no holes", "neither"])
def test_all_bytes_arrive_and_progress_counts_holes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    with open(tmp_path / "source", "wb") as file:
        file.write(b"begin" * 1000)
        file.seek(10_000_000)
        file.write(b"end" * 1_000_000)
        file.truncate(20_000_000)
    if way in ("read", "neither"):
        monkeypatch.setattr(os, "copy_file_range", refuse(errno.EXDEV))
    if way in ("no holes", "neither"):
        monkeypatch.setattr(os, "lseek", refuse(errno.EINVAL))
    progress: list[int] = []
    assert copied(tmp_path, progress.append) == 20_000_000
    assert sum(progress) == 20_000_000
    assert (tmp_path / "target").read_bytes() == (tmp_path / "source").read_bytes()
    is_sparse = (tmp_path / "target").stat().st_blocks * 512 < 10_000_000
    assert is_sparse == (way in ("fast", "read"))


def test_a_file_that_grows_for_ever_is_copied_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(b"x" * 1000)

    def grow(_: int) -> None:
        with open(tmp_path / "source", "ab") as file:
            file.write(b"x" * 1000)

    assert copied(tmp_path, grow) == 4000


def test_a_full_disk_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "source").write_bytes(b"x" * 1000)
    monkeypatch.setattr(os, "copy_file_range", refuse(errno.ENOSPC))
    monkeypatch.setattr(os, "pread", refuse(errno.EIO))
    with pytest.raises(OSError, match="refused") as found:
        copied(tmp_path)
    assert found.value.errno == errno.ENOSPC


@pytest.mark.parametrize("is_fast", [True, False])
def test_a_file_is_appended_to_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_fast: bool
) -> None:
    if not is_fast:
        monkeypatch.setattr(os, "copy_file_range", refuse(errno.EXDEV))
    with open(tmp_path / "source", "wb") as file:
        file.seek(5000)
        file.write(b"end")
        file.truncate(9000)
    with open(tmp_path / "source", "rb") as source, open(tmp_path / "target", "wb") as target:
        target.write(b"begin")
        target.flush()
        assert copy_data(source.fileno(), target.fileno(), lambda _: None, start=5) == 9000
    joined = b"begin" + (tmp_path / "source").read_bytes()
    assert (tmp_path / "target").read_bytes() == joined
