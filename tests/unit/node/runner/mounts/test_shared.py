"""Other users' folders: only what the job's script has looked at is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.node.runner.mounts.namespace import NotGranted
from portal.node.runner.mounts.shared import check


def identity(place: Path) -> str:
    """As the job's script notes it."""
    status = place.lstat()
    return f"{status.st_dev}:{status.st_ino}"


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    folder = tmp_path / "the irs"
    folder.mkdir()
    return folder


def test_the_same_folder_is_used_wherever_it_is(theirs: Path, tmp_path: Path) -> None:
    seen = identity(theirs)
    check([f"{seen} {theirs}"])
    theirs.rename(tmp_path / "else where")
    check([f"{seen} {tmp_path}/else where", f"{seen} {tmp_path}/else where"])


@pytest.mark.parametrize("what", ["another folder", "a link to another", "a link to it", "nothing"])
def test_what_replaces_it_is_refused(what: str, theirs: Path, tmp_path: Path) -> None:
    seen = identity(theirs)
    theirs.rename(tmp_path / "moved")
    (tmp_path / "own").mkdir()
    if what == "another folder":
        theirs.mkdir()
    elif what != "nothing":
        theirs.symlink_to(tmp_path / ("moved" if what == "a link to it" else "own"))
    with pytest.raises(NotGranted, match=f"the shared folder {theirs} was replaced"):
        check([f"{identity(tmp_path / 'moved')} {tmp_path}/moved", f"{seen} {theirs}"])


@pytest.mark.parametrize("text", ["", "1:2", "x /", "1:2 /\n\x1b[0m"])
def test_what_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(NotGranted) as caught:
        check([text])
    assert str(caught.value).isprintable()
