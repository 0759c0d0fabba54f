"""What replaces something deletes that alone, whatever others put in its place meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.node.file_server import renames
from portal.node.file_server.operations.kinds import placing
from portal.node.file_server.tree import tree
from tests.unit.node.file_server.operations.conftest import Operate


@pytest.fixture
def precious(home: Path) -> Path:
    """Where somebody else may write, too: a folder that he cannot empty, but rename."""
    for name in ("work", "to/work", "to/precious"):
        (home / name).mkdir(parents=True)
    (home / "work" / "new").write_text("new")
    (home / "to" / "work" / "old").write_text("old")
    (home / "to" / "precious" / "file").write_text("precious")
    return home / "to"


def test_a_folder_that_others_put_in_the_place_of_what_is_replaced_is_kept(
    operate: Operate, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exchanged(folder: int, name: bytes, to: int, other: bytes) -> bool:
        (precious / "work").rename(precious / "aside")
        (precious / "precious").rename(precious / "work")
        return renames.exchange(folder, name, to, other)

    monkeypatch.setattr(placing, "exchange", exchanged)
    found = operate("move", ["home/work"], "home/to", on_conflict="replace")
    assert found["state"] == "done"
    assert (precious / "work" / "new").read_text() == "new"
    assert (precious / "work (2)" / "file").read_text() == "precious"
    assert (precious / "aside" / "old").read_text() == "old"


def test_a_folder_that_gets_the_parts_name_at_the_last_moment_is_kept(
    operate: Operate, precious: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(folder: int, name: bytes, expected: tree.Identity | None = None) -> None:
        part = precious / os.fsdecode(name)
        part.rename(precious / "aside")
        (precious / "precious").rename(part)
        tree.remove(folder, name, expected)

    monkeypatch.setattr(placing, "remove", late)
    assert operate("move", ["home/work"], "home/to", on_conflict="replace")["state"] == "done"
    assert [p.read_text() for p in precious.glob(".slipway-*/file")] == ["precious"]
    assert (precious / "aside" / "old").read_text() == "old"


@pytest.mark.parametrize("is_folder", [True, False])
def test_only_what_is_expected_is_removed(home: Path, is_folder: bool) -> None:
    item = home / "item"
    if is_folder:
        (item / "deep").mkdir(parents=True)
        (item / "deep" / "file").write_text("x")
        item.chmod(0o500)
    else:
        item.write_text("x")
    status = item.stat()
    folder = os.open(home, os.O_RDONLY)
    tree.remove(folder, b"item", (status.st_dev, status.st_ino + 1))
    assert item.stat().st_mode == status.st_mode
    assert not is_folder or (item / "deep" / "file").exists()
    tree.remove(folder, b"item", (status.st_dev, status.st_ino))
    assert not item.exists()
    os.close(folder)
