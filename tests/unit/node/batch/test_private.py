"""Where the command keeps what its user's programs run: nobody else can replace it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.node.batch.private import private_folder


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "scratch" / "tmp"
    folder.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def parent() -> str:
    """Where a folder is made, which is gone afterwards."""
    with private_folder() as folder:
        assert os.stat(folder).st_mode & 0o777 == 0o700
    assert not os.path.exists(folder)
    return os.path.dirname(folder)


def test_it_is_in_tmpdir(place: Path) -> None:
    assert parent() == str(place)


def test_links_lead_to_where_it_is(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link").symlink_to(place)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "link"))
    assert parent() == str(place)


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o702])
@pytest.mark.parametrize("which", [".", ".."])
def test_not_where_others_can_replace_it(mode: int, which: str, place: Path) -> None:
    (place / which).chmod(mode)
    assert parent() == "/tmp"
    (place / which).chmod(mode | 0o1000)  # as /tmp is
    assert parent() == str(place)


def test_not_in_anothers_folder(place: Path) -> None:
    os.chown(place.parent, 12345, -1)
    assert parent() == "/tmp"


@pytest.mark.parametrize("text", ["", "tmp", "/nowhere"])
def test_without_a_usable_one_it_is_in_tmp(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", text)
    assert parent() == "/tmp"
