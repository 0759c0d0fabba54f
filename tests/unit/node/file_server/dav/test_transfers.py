"""COPY, MOVE and DELETE: what is replaced, and what stays."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.node.file_server.access.subjects import Subject
from portal.node.file_server.operations.kinds import copying, placing
from portal.node.file_server.renames import rename_new
from tests.unit.node.file_server.conftest import Client
from tests.unit.node.file_server.dav.conftest import dav, to

Make = Callable[[Path], None]


def a_file(path: Path) -> None:
    path.write_text(path.name)


def a_folder(path: Path) -> None:
    (path / "deep").mkdir(parents=True)
    (path / "deep/inner").write_text(path.name)
    (path / f"only {path.name}").write_text("1")


def a_link(path: Path) -> None:
    path.with_name("elsewhere").mkdir(exist_ok=True)
    path.symlink_to("elsewhere")


def nothing(_path: Path) -> None:
    pass


def shape(path: Path) -> object:
    """What is there, without regard to its own name."""
    if path.is_symlink():
        return os.readlink(path)
    if path.is_dir():
        return {str(each.relative_to(path)): shape(each) for each in path.rglob("*")}
    return path.read_text() if path.exists() else None


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
@pytest.mark.parametrize("new", [a_file, a_folder, a_link])
@pytest.mark.parametrize("old", [a_file, a_folder, a_link, nothing])
def test_everything_replaces_everything(
    data: Client, home: Path, method: str, new: Make, old: Make
) -> None:
    folder = home / "to"
    folder.mkdir()
    new(home / "new")
    old(folder / "old")
    expected = shape(home / "new")
    refused = data(method, dav("home/new"), headers=to("home/to/old", Overwrite="F"))
    assert refused.status == (201 if old is nothing else 412)
    if old is not nothing:
        assert shape(folder / "old") != expected or new is old is a_link
        assert data(method, dav("home/new"), headers=to("home/to/old")).status == 204
    assert shape(folder / "old") == expected
    assert os.path.lexists(home / "new") == (method == "COPY")
    assert set(os.listdir(folder)) <= {"old", "elsewhere"}


def test_a_folder_alone_replaces_a_folder(data: Client, home: Path) -> None:
    a_folder(home / "new")
    (home / "new").chmod(0o750)
    a_folder(home / "old")
    alone = to("home/old", Depth="0")
    assert data("COPY", dav("home/new"), headers=alone).status == 204
    assert os.listdir(home / "old") == []
    assert (home / "old").stat().st_mode & 0o777 == 0o750
    a_file(home / "file")
    assert data("COPY", dav("home/file"), headers=alone).status == 204, "files have no depth"
    assert (home / "old").read_text() == "file"


@pytest.mark.parametrize("method", ["COPY", "MOVE"])
def test_where_others_write_a_file_does_not_replace_a_folder(
    data: Client, home: Path, method: str
) -> None:
    """Somebody else could have given the file's name to a folder, which he cannot empty."""
    folder = home / "storage/data"
    folder.chmod(0o777)
    a_file(home / "file")
    a_folder(home / "tree")
    a_folder(folder / "old")
    expected = shape(folder / "old")
    answer = data(method, dav("home/file"), headers=to("storage/data/old"))
    assert (answer.status, answer.json["code"]) == (409, "kind")
    assert shape(folder / "old") == expected
    assert data(method, dav("home/tree"), headers=to("storage/data/old")).status == 204


def test_shared_folders_and_storage_areas_are_not_replaced(
    data: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_folder(home / "new")
    (home / "storage/data/x").write_text("old")
    monkeypatch.setattr(
        "portal.node.file_server.operations.protected.shared_with",
        lambda _: {Subject("user", "somebody")},
    )
    for method in ("COPY", "MOVE"):
        answer = data(method, dav("home/new"), headers=to("storage/data"))
        assert (answer.status, answer.json["code"]) == (409, "shared")
        assert data(method, dav("home/new"), headers=to("home/storage")).status == 409
        assert data(method, dav("home/new"), headers=to("storage")).status == 403
    assert (home / "storage/data/x").read_text() == "old"
    assert shape(home / "new/deep") == {"inner": "new"}


def test_what_contains_the_source_is_not_replaced(data: Client, home: Path) -> None:
    a_folder(home / "tree")
    for method in ("COPY", "MOVE"):
        assert data(method, dav("home/tree/deep"), headers=to("home/tree")).status == 409
        assert data(method, dav("home/tree"), headers=to("home/tree/deep/x")).status == 403
    assert shape(home / "tree/deep") == {"inner": "tree"}


@pytest.mark.parametrize("old", [a_file, a_folder])
def test_a_copy_that_fails_leaves_the_old_one(
    data: Client, home: Path, monkeypatch: pytest.MonkeyPatch, old: Make
) -> None:
    a_folder(home / "new")
    old(home / "old")
    expected = shape(home / "old")

    def full(*_: object) -> None:
        raise OSError(28, "")

    monkeypatch.setattr(copying, "copy_data", full)
    assert data("COPY", dav("home/new"), headers=to("home/old")).status == 507
    assert shape(home / "old") == expected
    assert [name for name in os.listdir(home) if name.startswith(".slipway-")] == []


def test_what_appears_meanwhile_is_not_replaced_if_that_is_forbidden(
    data: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_file(home / "new")

    def late(*arguments: object) -> None:
        (home / "old").write_text("theirs")
        rename_new(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(placing, "rename_new", late)
    for method in ("COPY", "MOVE"):
        headers = to("home/old", Overwrite="F")
        assert data(method, dav("home/new"), headers=headers).status == 412
        assert (home / "old").read_text() == "theirs"
        (home / "old").unlink()
    assert (home / "new").read_text() == "new"


@pytest.mark.parametrize("method", ["COPY", "MOVE", "DELETE", "MKCOL"])
def test_preconditions_are_of_the_source(data: Client, home: Path, method: str) -> None:
    path = "home/made" if method == "MKCOL" else "home/new"
    a_folder(home / "new")
    wrong = {"If-Match": '"wrong"'}
    assert data(method, dav(path), headers=to("home/to", **wrong)).status == 412
    assert not (home / "to").exists()
    assert not (home / "made").exists()
    if method != "MKCOL":
        body = b'<propfind xmlns="DAV:"><prop><getetag/></prop></propfind>'
        answer = data("PROPFIND", dav(path), body, {"Depth": "0"})
        tag = answer.body.split(b"<D:getetag>")[1].split(b"<")[0].decode()
        assert data(method, dav(path), headers=to("home/to", **{"If-Match": tag})).status < 300


def test_a_fragment_is_not_taken_for_the_folder(data: Client, home: Path) -> None:
    a_folder(home / "tree")
    for door in ("dav", "files"):
        assert data("DELETE", f"/data/{door}/home/tree/#part").status == 400
    assert (home / "tree/deep/inner").exists()


def test_a_large_copy_is_noted_for_the_next_server(
    data: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If this one is killed, nobody would find what it has copied so far."""
    a_folder(home / "new")
    seen: list[str] = []
    copy = copying.copy

    def looked_at(*arguments: object) -> bool:
        seen.extend(path.name for path in (home / ".slipway/files/operations").glob("*.json"))
        return copy(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(copying, "copy", looked_at)
    assert data("COPY", dav("home/new"), headers=to("home/copy")).status == 201
    assert len(seen) == 1
