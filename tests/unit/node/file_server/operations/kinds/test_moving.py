"""Moves between two file systems: the original goes only when all of it has arrived."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.node.file_server import renames
from portal.node.file_server.operations.kinds import moving
from tests.unit.node.file_server.operations.conftest import Operate


def make_tree(folder: Path) -> None:
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a").write_text("a")
    (folder / "link").symlink_to("deep/a")


def test_a_folder_is_copied_and_then_deleted(operate: Operate, home: Path, elsewhere: Path) -> None:
    make_tree(home / "work")
    found = operate("move", ["home/work"], "scratch")
    assert (found["state"], found["problems"]) == ("done", [])
    assert (found["files"], found["files_total"]) == (2, 2)
    assert (elsewhere / "work" / "deep" / "a").read_text() == "a"
    assert (elsewhere / "work" / "link").readlink() == Path("deep/a")
    assert os.listdir(elsewhere) == ["work"]
    assert not (home / "work").exists()


def test_the_original_remains_if_something_could_not_be_copied(
    operate: Operate, home: Path, elsewhere: Path
) -> None:
    make_tree(home / "work")
    os.mkfifo(home / "work" / "pipe")
    found = operate("move", ["home/work"], "scratch")
    assert [(each["path"], each["detail"]) for each in found["problems"]] == [
        ("home/work/pipe", "This is a named pipe and was left out."),
        ("home/work", "Not all of it could be copied, so the original remains as well."),
    ]
    assert (home / "work" / "deep" / "a").read_text() == "a"
    assert (elsewhere / "work" / "deep" / "a").read_text() == "a"


def test_what_comes_or_changes_during_the_move_remains(
    operate: Operate, home: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(home / "work")
    (home / "work" / "b").write_text("b")
    sync = renames.sync

    def somebody_writes(folder: int) -> None:
        (home / "work" / "deep" / "new").write_text("new")
        (home / "work" / "b").write_text("changed")
        sync(folder)

    monkeypatch.setattr(moving, "sync", somebody_writes)
    found = operate("move", ["home/work"], "scratch")
    words = "It was changed during the move and remains here."
    assert {each["path"]: each["detail"] for each in found["problems"]} == {
        "home/work/deep/new": words,
        "home/work/b": words,
    }
    assert (home / "work" / "b").read_text() == "changed"
    assert (home / "work" / "deep" / "new").read_text() == "new"
    assert not (home / "work" / "deep" / "a").exists()


def test_a_folder_on_another_file_system_is_replaced(
    operate: Operate, home: Path, elsewhere: Path
) -> None:
    make_tree(home / "work")
    make_tree(elsewhere / "work")
    (elsewhere / "work" / "old").write_text("old")
    found = operate("move", ["home/work"], "scratch", on_conflict="replace")
    assert found["state"] == "done"
    assert sorted(os.listdir(elsewhere / "work")) == ["deep", "link"]
    assert os.listdir(elsewhere) == ["work"]
