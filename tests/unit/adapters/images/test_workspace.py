"""Folders for builds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.adapters.images.workspace import PREFIX, LocalWorkspaces

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="others need user namespaces")


def test_a_folder_is_deleted_at_the_end_also_of_a_failure(tmp_path: Path) -> None:
    workspaces = LocalWorkspaces(ids=False, parent=tmp_path)

    def fail() -> None:
        with workspaces() as folder:
            (folder / "image").mkdir()
            (folder / "image" / "file").touch(mode=0o000)
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_what_a_crash_left_is_deleted_and_other_builds_are_not(tmp_path: Path) -> None:
    crashed, foreign = tmp_path / f"{PREFIX}crashed", tmp_path / "other"
    for folder in (crashed, foreign):
        folder.mkdir()
        (folder / ".lock").touch()
    workspaces = LocalWorkspaces(ids=False, parent=tmp_path)
    with workspaces() as first, workspaces() as second:
        assert {path.name for path in tmp_path.iterdir()} == {"other", first.name, second.name}


def test_links_in_the_place_of_a_folder_are_left_alone(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / ".lock").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(victim)
    with LocalWorkspaces(ids=False, parent=tmp_path)():
        pass
    assert (victim / ".lock").exists()
