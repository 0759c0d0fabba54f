"""The files of the session's own home that are deleted at its end."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest

from portal.node.runner import home
from portal.node.runner.home import HomeCounter, count, mount_points

NONE: frozenset[str] = frozenset()


def counted(place: Path, mounts: frozenset[str] = NONE) -> tuple[object, object]:
    found = count(str(place), mounts, time.monotonic)
    return found.get("home_files"), found.get("home_bytes")


def write(place: Path, size: int = 10) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"x" * size)


def test_files_that_a_person_would_miss(tmp_path: Path) -> None:
    assert counted(tmp_path) == (0, 0)
    write(tmp_path / "Untitled.ipynb", 100)
    write(tmp_path / "results" / "deep" / "table.csv", 20)
    for derived in (".cache/pip", ".bashrc", "src/__pycache__/a.pyc", "web/node_modules/x.js"):
        write(tmp_path / derived)
    os.mkfifo(tmp_path / "pipe")
    assert counted(tmp_path) == (2, 120)


def test_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "elsewhere" / "big", 1000)
    mine = tmp_path / "home"
    mine.mkdir()
    (mine / "folder").symlink_to(tmp_path / "elsewhere")
    (mine / "file").symlink_to(tmp_path / "elsewhere" / "big")
    (mine / "round").symlink_to(mine)
    assert counted(mine) == (0, 0)


def test_mounted_folders_do_not_count(tmp_path: Path) -> None:
    write(tmp_path / "climate-2026" / "kept", 1000)
    write(tmp_path / "lost", 5)
    assert counted(tmp_path, frozenset({f"{tmp_path}/climate-2026"})) == (1, 5)


def test_the_walk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        write(tmp_path / f"{number}" / "file")
    monkeypatch.setattr(home, "MOST_FILES", 10)
    assert counted(tmp_path) == (10, 100)
    monkeypatch.setattr(home, "MOST_FILES", 1000)
    monkeypatch.setattr(home, "MOST_FOLDERS", 10)
    assert counted(tmp_path) == (None, None)
    monkeypatch.setattr(home, "MOST_FOLDERS", 1000)
    clock = itertools.count(0.0, 1.0)
    assert count(str(tmp_path), NONE, lambda: next(clock)) == {}


def test_folders_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    write(tmp_path / "file")
    assert counted(tmp_path / "gone") == (0, 0)


def test_mount_points_with_blanks(tmp_path: Path) -> None:
    file = tmp_path / "mountinfo"
    file.write_text("36 35 98:0 /a /home/alice/my\\040data rw - ext4 /dev/root rw\n")
    assert mount_points(str(file)) == {"/home/alice/my data"}
    assert "/" in mount_points()
    assert mount_points("/nowhere") == NONE


def test_it_counts_in_the_background(tmp_path: Path) -> None:
    write(tmp_path / "file")
    counter = HomeCounter(str(tmp_path))
    assert counter.latest() == {}
    counter.start()
    deadline = time.monotonic() + 10
    while not counter.latest() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert counter.latest() == {"home_files": 1, "home_bytes": 10}
