"""The list of image files, made by a real shell in a temporary home directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.adapters.ssh.home_files import HomeFiles
from portal.core.launch.own_image import MOST_FILES, ImageFile
from tests.support.transports import ShellTransport


@pytest.fixture
def shell(tmp_path: Path) -> ShellTransport:
    home = tmp_path / "alice"
    home.mkdir()
    return ShellTransport(home)


@pytest.fixture
def files(shell: ShellTransport) -> HomeFiles:
    return HomeFiles(shell, ".slipway", "storage")


def put(home: Path, name: str, age: int = 0) -> Path:
    """An image file, some seconds old."""
    file = home / "storage" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"SIF")
    os.utime(file, (1_000_000 - age, 1_000_000 - age))
    return file


def names(files: HomeFiles, *places: str) -> list[str]:
    return [file.name for file in files.image_files("alice", places)]


def test_without_storage_folders_there_are_none(files: HomeFiles) -> None:
    assert files.image_files("alice", []) == []


def test_the_newest_are_first_and_named_as_launches_name_them(
    shell: ShellTransport, files: HomeFiles
) -> None:
    put(shell.home, "images/old.sif", age=9)
    new = put(shell.home, "work/deep/er/new tool.sif")
    shell.chat = b"Welcome!\n"
    found = files.image_files("alice", [])
    assert found[0] == ImageFile("work/deep/er/new tool.sif", str(new), 3)
    assert found[1].name == "images/old.sif"


def test_only_files_in_folders_that_the_user_may_read(
    shell: ShellTransport, files: HomeFiles
) -> None:
    put(shell.home, "images/mine.sif")
    for name in ("beside.sif", ".hidden/a.sif", "images/a/b/c/d/too-deep.sif", "images/notes.txt"):
        put(shell.home, name)
    (shell.home / "storage/images/folder.sif").mkdir()
    os.mkfifo(shell.home / "storage/images/pipe.sif")
    (shell.home / "storage/images/link.sif").symlink_to(put(shell.home, "beside.sif"))
    assert names(files) == ["images/mine.sif"]


def test_a_storage_folder_may_be_a_link(
    shell: ShellTransport, files: HomeFiles, tmp_path: Path
) -> None:
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch/big.sif").write_bytes(b"SIF")
    (shell.home / "storage").mkdir()
    (shell.home / "storage/scratch").symlink_to(tmp_path / "scratch")
    assert names(files) == ["scratch/big.sif"]


def test_folders_of_the_site_are_listed_by_their_paths(
    shell: ShellTransport, files: HomeFiles, tmp_path: Path
) -> None:
    put(shell.home, "images/mine.sif")
    (tmp_path / "two words").mkdir()
    file = tmp_path / "two words/site.sif"
    file.write_bytes(b"SIF!")
    found = files.image_files("alice", [str(tmp_path / "two words"), "/nowhere"])
    assert [one.name for one in found] == ["images/mine.sif", str(file)]
    assert found[1].path == str(file)


def test_thousands_of_files_are_cut_to_the_newest(shell: ShellTransport, files: HomeFiles) -> None:
    for number in range(MOST_FILES + 10):
        put(shell.home, f"images/{number}.sif", age=number)
    assert names(files) == [f"images/{number}.sif" for number in range(MOST_FILES)]


def test_names_are_text_whatever_is_in_them(shell: ShellTransport, files: HomeFiles) -> None:
    put(shell.home, "images/$(touch x) '\n.sif")
    assert names(files) == ["images/$(touch x) '\n.sif"]
