"""Folders that another user shares, as a root of their own."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from tests.unit.node.file_server.conftest import Client
from tests.unit.node.file_server.uploads.conftest import Tus

OWNER = pwd.getpwnam("nobody")


@pytest.fixture
def theirs(home: Path) -> Path:
    """A storage folder of another user's."""
    folder = home.parent / OWNER.pw_name / "storage" / "data"
    folder.mkdir(parents=True)
    for path in (folder, folder.parent):
        os.chown(path, OWNER.pw_uid, OWNER.pw_gid)
    (folder / "a.txt").write_text("theirs")
    return folder


def test_a_shared_folder_is_listed_and_read(control: Client, data: Client, theirs: Path) -> None:
    shared = f"shared/{OWNER.pw_name}/data"
    found = control("GET", f"/v1/list/{shared}").json
    assert [entry["path"] for entry in found["entries"]] == [f"{shared}/a.txt"]
    assert found["folder"]["name"] == theirs.name
    assert data("GET", f"/data/files/{shared}/a.txt").body == b"theirs"
    assert control("GET", f"/v1/entry/{shared}").json["path"] == shared


def test_whatever_is_not_shared_does_not_exist(control: Client, theirs: Path, home: Path) -> None:
    (theirs.parent / "link").symlink_to(theirs)
    (theirs.parent / "mine").mkdir()  # not its owner's
    (home.parent / "root").mkdir()
    answers = [
        control("GET", f"/v1/list/{place}").body
        for place in (
            "shared",
            f"shared/{OWNER.pw_name}",
            f"shared/{OWNER.pw_name}/none",
            f"shared/{OWNER.pw_name}/link",
            f"shared/{OWNER.pw_name}/mine",
            "shared/root/data",
            "shared/n0-such/data",
            "shared/%FF/data",
        )
    ]
    assert len(set(answers)) == 1
    assert b'"status": 404' in answers[0]


def test_an_exchanged_storage_is_not_followed(control: Client, theirs: Path) -> None:
    theirs.parent.rename(theirs.parent.parent / "real")
    theirs.parent.symlink_to(theirs.parent.parent / "real")
    assert control("GET", f"/v1/list/shared/{OWNER.pw_name}/data").status == 404


def test_a_link_out_of_a_shared_folder_is_refused(
    control: Client, data: Client, theirs: Path, home: Path
) -> None:
    (home / "mine.txt").write_text("private")
    (theirs / "link").symlink_to(home / "mine.txt")
    (theirs / "up").symlink_to("../..")
    shared = f"shared/{OWNER.pw_name}/data"
    assert data("GET", f"/data/files/{shared}/link").json["code"] == "outside"
    assert control("GET", f"/v1/list/{shared}/up").json["code"] == "outside"


def test_files_are_uploaded_into_a_shared_folder(data: Client, theirs: Path) -> None:
    tus, shared = Tus(data), f"shared/{OWNER.pw_name}/data"
    url = tus.begin(f"{shared}/new/b.txt", 3)
    assert tus.patch(url, 0, b"abc").headers["Upload-Final-Path"] == f"{shared}/new/b.txt"
    assert (theirs / "new/b.txt").read_text() == "abc"
    assert tus.create(f"shared/{OWNER.pw_name}/other/x", 3).status == 404
    assert tus.create(f"shared/{OWNER.pw_name}/new", 3).status == 404
    assert not (theirs.parent / "new").exists()


def test_a_shared_folder_by_webdav(data: Client, theirs: Path) -> None:
    shared = f"/data/dav/shared/{OWNER.pw_name}/data"
    (theirs / "up").symlink_to(".")
    found = data("PROPFIND", shared, headers={"Depth": "1"})
    assert found.status == 207
    assert found.body.count(b"<D:href>") == 2
    assert data("PUT", f"{shared}/b.txt", b"abc").status == 201
    for method in ("DELETE", "MOVE", "COPY", "PUT", "MKCOL"):
        headers = {"Destination": "/data/dav/home/x"}
        assert data(method, shared, headers=headers).status == 405, method
    assert sorted(path.name for path in theirs.iterdir()) == ["a.txt", "b.txt", "up"]
    assert data("PROPFIND", "/data/dav/shared/nobody", headers={"Depth": "1"}).status == 404
