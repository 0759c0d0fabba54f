"""Folders for what must outlive a server's process."""

from __future__ import annotations

import os
from pathlib import Path

from portal.node.file_server.state import make_private
from portal.node.file_server.uploads.records import Record, Store, new_id


def test_all_folders_are_private_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o002)  # usual where users have groups of their own
    try:
        folder = tmp_path / ".slipway" / "files" / "uploads"
        Store([str(folder)]).save(Record(new_id(), "home/a", 1, 0.0))
    finally:
        os.umask(before)
    made = [folder, folder.parent, folder.parent.parent]
    assert [place.stat().st_mode & 0o777 for place in made] == [0o700] * 3


def test_what_is_there_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    make_private(str(tmp_path / "a" / "b"))
    make_private(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o755
