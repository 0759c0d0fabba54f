"""Walks by descriptor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.file_server.errors import Refused
from portal.node.file_server.tree.tree import ENTER, LEAVE, Tree, remove


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path, os.O_RDONLY)
    yield opened
    os.close(opened)


def test_folders_are_entered_and_left_in_order(folder: int, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").touch()
    with Tree(folder) as tree:
        found = [(step.kind, b"/".join(tree.below(step)), tree.depth) for step in tree.steps(b"a")]
    assert found == [
        ("enter", b"", 0),
        ("enter", b"b", 1),
        ("item", b"b/file", 2),
        ("leave", b"b", 1),
        ("leave", b"", 0),
    ]


def test_the_folder_itself_is_a_beginning(folder: int, tmp_path: Path) -> None:
    current = tmp_path
    for _ in range(30):
        current /= "d"
    current.mkdir(parents=True)
    with Tree(folder) as tree:
        found = [step.kind for step in tree.steps(b".")]
    assert found == [ENTER] * 31 + [LEAVE] * 31


def test_a_folder_that_is_left_out_is_not_left(folder: int, tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    with Tree(folder) as tree:
        found = []
        for step in tree.steps(b"a"):
            found.append((step.kind, step.name))
            step.skip = step.name == b"b"
    assert found == [("enter", b"a"), ("enter", b"b"), ("leave", b"a")]


def test_a_walk_that_is_moved_away_ends(folder: int, tmp_path: Path) -> None:
    """Going up by “..” would lead somewhere else: that is noticed."""
    deep = tmp_path.joinpath(*["d"] * 30)
    deep.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    with Tree(folder) as tree, pytest.raises(Refused, match="moved"):  # noqa: PT012
        for step in tree.steps(b"d"):
            if tree.depth == 29 and step.kind == ENTER:
                tmp_path.joinpath(*["d"] * 10).rename(tmp_path / "elsewhere" / "d")


def test_few_descriptors_are_open_however_deep_a_tree_is(folder: int, tmp_path: Path) -> None:
    tmp_path.joinpath(*["d"] * 100).mkdir(parents=True)
    before, most = len(os.listdir("/proc/self/fd")), 0
    with Tree(folder) as tree:
        for _ in tree.steps(b"d"):
            most = max(most, len(os.listdir("/proc/self/fd")) - before)
    assert most <= 18
    assert len(os.listdir("/proc/self/fd")) == before


def test_removing_what_does_not_exist_is_no_error(folder: int, tmp_path: Path) -> None:
    remove(folder, b"none")
    (tmp_path / "link").symlink_to("/etc")
    remove(folder, b"link")
    assert os.listdir(tmp_path) == []
