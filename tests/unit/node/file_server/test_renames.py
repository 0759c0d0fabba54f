"""Renames that replace nothing, with and without the kernel's help."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.file_server import renames
from portal.node.file_server.renames import exchange, rename_new


def unsupported(*_: object) -> None:
    raise OSError(errno.EINVAL, "as on NFS")


def no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "as on FAT")


@pytest.fixture(params=["renameat2", "links", "neither"])
def folder(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[int]:
    if request.param != "renameat2":
        monkeypatch.setattr(renames, "_renameat2", unsupported)
    if request.param == "neither":
        monkeypatch.setattr(os, "link", no_links)
    opened = os.open(tmp_path, os.O_RDONLY)
    yield opened
    os.close(opened)


def test_files_links_and_folders_get_a_new_name(folder: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("file")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    for name in (b"file", b"link", b"folder"):
        rename_new(folder, name, folder, b"new " + name)
    assert sorted(os.listdir(tmp_path)) == ["new file", "new folder", "new link"]
    assert (tmp_path / "new file").read_text() == "file"
    assert os.readlink(tmp_path / "new link") == "/etc/passwd"
    assert os.listdir(tmp_path / "new folder") == ["deep"]


def test_nothing_is_replaced_not_even_an_empty_folder(folder: int, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "nowhere").symlink_to("none")
    (tmp_path / "other").write_text("other")
    for name in (b"file", b"folder"):
        for taken in (b"empty", b"nowhere", b"other"):
            with pytest.raises(FileExistsError):
                rename_new(folder, name, folder, taken)
    with pytest.raises(FileNotFoundError):
        rename_new(folder, b"none", folder, b"new")
    assert sorted(os.listdir(tmp_path)) == ["empty", "file", "folder", "nowhere", "other"]


def test_names_are_exchanged_where_that_is_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").mkdir()
    opened = os.open(tmp_path, os.O_RDONLY)
    assert exchange(opened, b"a", opened, b"b")
    assert (tmp_path / "b").read_text() == "a"
    with pytest.raises(FileNotFoundError):
        exchange(opened, b"a", opened, b"none")
    monkeypatch.setattr(renames, "_renameat2", unsupported)
    assert not exchange(opened, b"a", opened, b"b")
    os.close(opened)
