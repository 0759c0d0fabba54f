"""Roots, and links that somebody else could have put into a folder: no change leads elsewhere."""

from __future__ import annotations

import grp
import os
import pwd
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.roots import is_private
from portal.node.file_server.server import FileServer
from tests.unit.node.file_server.conftest import Answer, Client
from tests.unit.node.file_server.uploads.conftest import Tus

BOB = 4242


def put(data: Client, _control: Client, path: str) -> Answer:
    return data("PUT", f"/data/files/{path}", b"mine")


def dav_put(data: Client, _control: Client, path: str) -> Answer:
    return data("PUT", f"/data/dav/{path}", b"mine")


def tus(data: Client, _control: Client, path: str) -> Answer:
    return Tus(data).create(path, 4, on_conflict="replace")


def delete(data: Client, _control: Client, path: str) -> Answer:
    return data("DELETE", f"/data/files/{path}")


def dav_delete(data: Client, _control: Client, path: str) -> Answer:
    return data("DELETE", f"/data/dav/{path}")


def make(_data: Client, control: Client, path: str) -> Answer:
    return control("POST", f"/v1/folder/{path}", {})


def dav_make(data: Client, _control: Client, path: str) -> Answer:
    return data("MKCOL", f"/data/dav/{path}")


def rename(_data: Client, control: Client, path: str) -> Answer:
    return control("POST", f"/v1/rename/{path}", {"name": "renamed"})


def dav_move(data: Client, _control: Client, path: str) -> Answer:
    to = {"Destination": "/data/dav/home/moved"}
    return data("MOVE", f"/data/dav/{path}", headers=to)


def dav_copy_to(data: Client, _control: Client, path: str) -> Answer:
    to = {"Destination": f"/data/dav/{path}"}
    return data("COPY", "/data/dav/home/file", headers=to)


def operation(control: Client, **order: Any) -> Answer:
    return control("POST", "/v1/operations", order)


def operation_delete(_data: Client, control: Client, path: str) -> Answer:
    return operation(control, kind="delete", items=[path])


def operation_mode(_data: Client, control: Client, path: str) -> Answer:
    return operation(control, kind="mode", items=[path], mode="777")


def operation_move(_data: Client, control: Client, path: str) -> Answer:
    return operation(control, kind="move", items=[path], to="home")


def operation_copy(_data: Client, control: Client, path: str) -> Answer:
    return operation(control, kind="copy", items=[path], to="home")


def dav_copy(data: Client, _control: Client, path: str) -> Answer:
    to = {"Destination": "/data/dav/home/copied"}
    return data("COPY", f"/data/dav/{path}", headers=to)


def copy_into(_data: Client, control: Client, path: str) -> Answer:
    return operation(control, kind="copy", items=["home/file"], to=path.rpartition("/")[0])


ON_FILES = (put, dav_put, tus)
INSIDE = (
    *ON_FILES,
    delete,
    dav_delete,
    make,
    dav_make,
    rename,
    dav_move,
    dav_copy_to,
    operation_delete,
    operation_mode,
    operation_move,
    operation_copy,
    dav_copy,
    copy_into,
)
Door = Callable[[Client, Client, str], Answer]


@pytest.fixture
def private(home: Path) -> Path:
    """What the links lead to; and the folder in which others may write."""
    (home / "file").write_text("x")
    (home / "storage/private").mkdir()
    (home / "storage/private/secret").write_text("secret")
    (home / "storage/data/report.txt").symlink_to("../private/secret")
    (home / "storage/data/folder").symlink_to("../private")
    return home / "storage/private"


def others_write_by_mode(folder: Path) -> None:
    folder.chmod(0o777)


def others_write_by_list(folder: Path) -> None:
    rows = ((1, 7, -1), (2, 7, BOB), (4, 5, -1), (16, 7, -1), (32, 0, -1))
    packed = b"".join(struct.pack("<HHI", *row[:2], row[2] & 0xFFFFFFFF) for row in rows)
    os.setxattr(folder, "system.posix_acl_access", struct.pack("<I", 2) + packed)


def somebody_elses_link(folder: Path) -> None:
    for link in ("report.txt", "folder"):
        os.chown(folder / link, BOB, BOB, follow_symlinks=False)


def somebody_elses_folder(folder: Path) -> None:
    os.chown(folder, BOB, BOB)


WAYS = (others_write_by_mode, others_write_by_list, somebody_elses_link, somebody_elses_folder)


@pytest.mark.parametrize("area", ["storage", "home/storage"])
@pytest.mark.parametrize("way", WAYS)
def test_a_planted_link_leads_no_change_elsewhere(
    data: Client, control: Client, home: Path, private: Path, way: Callable[[Path], None], area: str
) -> None:
    way(home / "storage/data")
    for door in ON_FILES:
        assert door(data, control, f"{area}/data/report.txt").status == 403, door
    for inside in INSIDE:
        answer = inside(data, control, f"{area}/data/folder/secret")
        assert (answer.status, answer.json["code"]) == (403, "link"), inside
    assert os.listdir(private) == ["secret"]
    assert (private / "secret").read_text() == "secret"
    assert (private / "secret").stat().st_mode & 0o777 != 0o777
    assert data("GET", f"/data/files/{area}/data/report.txt").body == b"secret"  # reading goes on


LINKS = {"out": "../private/secret", "up": "..", "absolute": "/etc/passwd", "within": "inner/file"}
LINKS |= {"inner/up": "../within", "inner/out": "../../private", "inner/hidden": "up/../../.."}


@pytest.mark.parametrize("way", [others_write_by_mode, others_write_by_list])
def test_copies_of_others_links_lead_nowhere_but_into_the_copy(
    data: Client, control: Client, home: Path, private: Path, way: Callable[[Path], None]
) -> None:
    """A copied link is the user's own, and would be followed where nobody else can write."""
    tree = home / "storage/data/tree"
    (tree / "inner").mkdir(parents=True)
    for name, goal in LINKS.items():
        (tree / name).symlink_to(goal)
    for folder in (tree, tree / "inner"):
        way(folder)
    answer = operation(control, kind="copy", items=["storage/data/tree"], to="home")
    assert answer.json["problem_count"] == 5
    copied = sorted(str(p.relative_to(home / "tree")) for p in (home / "tree").rglob("*"))
    assert copied == ["inner", "inner/up", "within"]
    way(home / "storage/data")
    single = operation(control, kind="copy", items=["storage/data/report.txt"], to="storage")
    assert (single.json["state"], single.json["problem_count"]) == ("failed", 1)
    assert private.parent.joinpath("report.txt").is_symlink() is False
    assert data("COPY", "/data/dav/storage/data/tree", headers=TO_COPY).status == 409


TO_COPY = {"Destination": "/data/dav/home/again"}


@pytest.mark.parametrize("door", ON_FILES)
def test_the_users_own_link_in_a_folder_of_the_users_alone_is_followed(
    data: Client, control: Client, home: Path, private: Path, door: Door
) -> None:
    assert door(data, control, "storage/data/report.txt").status in (200, 201)
    assert (home / "storage/data/report.txt").is_symlink()
    assert "secret" in os.listdir(private)


@pytest.fixture
def alice(monkeypatch: pytest.MonkeyPatch) -> str:
    """The user has a group of that name, as on many systems."""
    user = pwd.struct_passwd(("alice", "x", os.getuid(), 7777, "", "/", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda _number: user)
    return "alice"


@pytest.mark.parametrize(
    ("group", "members", "private"),
    [
        (("alice", 7777), [], True),
        (("alice", 7777), ["alice"], True),
        (("alice", 7777), ["bob"], False),
        (("users", 7777), [], False),
        (("alice", 7778), [], False),
    ],
)
def test_a_group_may_write_if_it_is_the_users_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    alice: str,
    group: tuple[str, int],
    members: list[str],
    private: bool,
) -> None:
    assert alice
    entry = grp.struct_group((group[0], "x", group[1], members))
    monkeypatch.setattr(grp, "getgrgid", lambda _number: entry)
    tmp_path.chmod(0o770)
    os.chown(tmp_path, -1, group[1])
    opened = os.open(tmp_path, os.O_RDONLY)
    assert is_private(opened) is private
    others_write_by_list(tmp_path)
    assert not is_private(opened)
    os.close(opened)


# An account without storage folders


def test_the_storage_area_is_there_when_it_is_first_looked_at(control: Client, home: Path) -> None:
    shutil.rmtree(home / "storage")
    assert control("GET", "/v1/list/storage").json["entries"] == []
    shutil.rmtree(home / "storage")
    assert control("POST", "/v1/folder/storage/data").status == 201
    assert (home / "storage/data").is_dir()


@pytest.mark.parametrize("path", ["entry/storage", "usage/storage", "search/storage?text=a"])
def test_other_questions_do_not_create_it(control: Client, home: Path, path: str) -> None:
    shutil.rmtree(home / "storage")
    control("GET", f"/v1/{path}")
    assert not (home / "storage").exists()


def test_a_quota_without_the_area_is_that_of_the_folder_above(
    control: Client, server: FileServer, home: Path
) -> None:
    shutil.rmtree(home / "storage")
    server.files.order.quota["storage"] = "df"  # type: ignore[index]
    answer = control("GET", "/v1/quota/storage")
    assert (answer.status, answer.json["source"]) == (200, "df")
    assert not (home / "storage").exists()


def test_webdav_begins_in_an_empty_storage_area(data: Client, home: Path) -> None:
    shutil.rmtree(home / "storage")
    assert data("PROPFIND", "/data/dav/storage/", headers={"Depth": "1"}).status == 207
    shutil.rmtree(home / "storage")
    assert data("MKCOL", "/data/dav/storage/data").status == 201


@pytest.mark.parametrize("instead", ["file", "link"])
def test_a_storage_area_that_cannot_be_created_is_named(
    control: Client, home: Path, instead: str
) -> None:
    shutil.rmtree(home / "storage")
    if instead == "file":
        (home / "storage").touch()
    else:
        (home / "storage").symlink_to("away")
    answer = control("GET", "/v1/list/storage")
    assert answer.status == 404
    assert instead == "file" or f"{home}/storage, does not exist" in answer.json["detail"]
