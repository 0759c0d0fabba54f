"""The folder commands, run by a real shell in a temporary home directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.adapters.ssh.home_files import HomeFiles
from portal.core.launch.mounts import Folder
from portal.errors import Conflict, HomeUnusable, InvalidRequest
from tests.support.transports import ShellTransport


@pytest.fixture
def shell(tmp_path: Path) -> ShellTransport:
    home = tmp_path / "alice"
    home.mkdir()
    return ShellTransport(home)


@pytest.fixture
def files(shell: ShellTransport) -> HomeFiles:
    return HomeFiles(shell, ".slipway", "storage")


def names(files: HomeFiles) -> list[str]:
    return [folder.name for folder in files.folders("alice")]


def test_at_first_there_is_only_the_home_directory(shell: ShellTransport, files: HomeFiles) -> None:
    assert files.folders("alice") == [Folder("home", str(shell.home))]
    (shell.home / "storage").write_text("a file in the way")
    assert files.folders("alice") == [Folder("home", str(shell.home))]


def test_a_folder_is_created_listed_and_found(shell: ShellTransport, files: HomeFiles) -> None:
    made = files.make_folder("alice", "data")
    assert made == Folder("data", str(shell.home / "storage" / "data"))
    assert files.folders("alice")[1:] == [made]
    assert files.missing("alice", ["data", "maps"]) == {"maps"}
    (shell.home / "storage" / "maps").write_text("no folder")
    assert files.missing("alice", ["maps"]) == {"maps"}


def test_the_file_of_an_own_image_must_be_readable(
    shell: ShellTransport, files: HomeFiles, tmp_path: Path
) -> None:
    (shell.home / "storage/images/deep").mkdir(parents=True)
    for path in ("images/it's.sif", "images/deep/mine.sif"):
        assert files.missing("alice", [], path) == {path}
        (shell.home / "storage" / path).write_text("SIF")
        assert files.missing("alice", ["images", "other"], path) == {"other"}
    assert files.missing("alice", [], "images/deep") == {"images/deep"}
    site = tmp_path / "site.sif"
    assert files.missing("alice", [], str(site)) == {str(site)}
    site.write_text("SIF")
    assert files.missing("alice", [], str(site)) == set()


def test_only_folders_count_whatever_their_names(shell: ShellTransport, files: HomeFiles) -> None:
    storage = shell.home / "storage"
    odd = ["b c", "-rf", "$(id)", "naïve", "데이터", "x" * 255]
    for name in ["a", "home", ".hidden", "new\nline", *odd]:
        (storage / name).mkdir(parents=True)
    os.mkdir(os.fsencode(storage) + b"/\xff\xfe")
    (storage / "file").write_text("")
    (storage / "link").symlink_to(storage / "a")
    (storage / "broken").symlink_to("nowhere")
    (storage / "loop").symlink_to("loop")
    (storage / "a" / "inner").mkdir()
    found = {folder.name: folder.mountable for folder in files.folders("alice")[1:]}
    refused = dict.fromkeys(["home", "new\nline", "\ufffd\ufffd"], False)
    assert found == dict.fromkeys(["a", "link", *odd], True) | refused


def test_output_of_the_login_shell_is_not_parsed_as_folders(
    shell: ShellTransport, files: HomeFiles
) -> None:
    files.make_folder("alice", "data")
    shell.chat = b"Welcome!\nquota: 5 GB\n"
    assert names(files) == ["home", "data"]
    assert files.missing("alice", ["data", "maps"]) == {"maps"}
    assert files.make_folder("alice", "maps").path == str(shell.home / "storage" / "maps")


def test_the_list_is_bounded(shell: ShellTransport, files: HomeFiles) -> None:
    for number in range(520):
        (shell.home / "storage" / f"n{number:03}").mkdir(parents=True)
    assert names(files)[1:] == [f"n{number:03}" for number in range(500)]


def test_storage_may_be_elsewhere(shell: ShellTransport, tmp_path: Path) -> None:
    files = HomeFiles(shell, ".slipway", f"{tmp_path}/big/{{user}}/")
    made = files.make_folder("alice", "data")
    assert made.path == f"{tmp_path}/big/alice/data"
    assert (tmp_path / "big" / "alice" / "data").is_dir()
    assert files.folders("alice")[1:] == [made]
    assert files.missing("alice", ["data", "x"]) == {"x"}
    assert HomeFiles(shell, ".slipway", f"{tmp_path}/big/{{user}}").folders("bob")[1:] == []


def refusal(files: HomeFiles, name: str) -> str:
    with pytest.raises(InvalidRequest) as caught:
        files.make_folder("alice", name)
    (error,) = caught.value.errors
    assert error.field == "folder"
    return error.message


def test_no_folder_is_created_twice(shell: ShellTransport, files: HomeFiles) -> None:
    files.make_folder("alice", "data")
    assert refusal(files, "data") == "you already have a folder or a file of this name"


def failure(files: HomeFiles) -> str:
    """The error if no folder could be created, whatever its name (E8)."""
    with pytest.raises(Conflict) as caught:
        files.make_folder("alice", "data")
    return caught.value.text


def test_reasons_why_a_folder_cannot_be_created(shell: ShellTransport, files: HomeFiles) -> None:
    (shell.home / "storage").write_text("a file in the way")
    assert "it is not a folder" in failure(files)
    (shell.home / "storage").unlink()
    (shell.home / "storage").symlink_to("/proc")
    assert "No such file or directory" in failure(files)
    (shell.home / "storage").unlink()
    (shell.home / "storage").symlink_to("nowhere")
    assert "it is not a folder" in failure(files)
    (shell.home / "storage").unlink()
    (shell.home / "storage").mkdir(mode=0o500)
    if os.geteuid():  # root may write everywhere
        assert "Permission denied" in failure(files)


def test_a_missing_home_is_not_an_empty_one(shell: ShellTransport, files: HomeFiles) -> None:
    shell.home.rmdir()
    words = f"^Your home directory {shell.home} does not exist on the login node.$"
    with pytest.raises(HomeUnusable, match=words):
        files.folders("alice")
    with pytest.raises(HomeUnusable, match=words):
        files.missing("alice", ["data"])
    with pytest.raises(HomeUnusable, match=words):
        files.make_folder("alice", "data")
