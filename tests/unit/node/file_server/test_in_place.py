"""Files that are saved in place: links, other owners, folders in which nothing can be created."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server import at, in_place
from portal.node.file_server.entries import described, etag
from portal.node.file_server.location import parse
from portal.node.file_server.roots import Root, Roots
from portal.node.file_server.server import FileServer
from portal.node.file_server.uploads.records import REPLACE, Store
from portal.node.file_server.uploads.uploads import Uploads
from portal.node.file_server.uploads.whole import Body
from tests.support.other_account import BOB, done_by_bob, private_home
from tests.unit.node.file_server.conftest import Client
from tests.unit.node.file_server.uploads.conftest import Tus, parts

NEW = b"new contents"


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def linked(home: Path) -> Path:
    """A file with a second name, and a time that is not now."""
    file = home / "storage/data/report"
    file.write_bytes(b"old, and longer than what is new")
    file.chmod(0o640)
    os.setxattr(file, "user.note", b"kept")
    os.link(file, home / "second")
    os.utime(file, (1000, 1000))
    return file


def put(data: Client, headers: dict[str, str] | None = None, body: bytes = NEW) -> Any:
    answer = data("PUT", "/data/files/storage/data/report", body, headers)
    return answer.status if answer.status < 300 else (answer.status, answer.json["code"])


def upload(data: Client, _headers: Any = None) -> Any:
    tus = Tus(data)
    url = tus.begin("storage/data/report", len(NEW), on_conflict="replace")
    return tus.patch(url, 0, NEW).status


@pytest.mark.parametrize("door", [put, upload])
def test_a_file_with_several_names_keeps_them(
    data: Client, home: Path, linked: Path, door: Callable[[Client], Any]
) -> None:
    inode = linked.stat().st_ino
    assert door(data) in (200, 204)
    status = (home / "second").stat()
    assert (status.st_ino, status.st_nlink, status.st_mode & 0o777) == (inode, 2, 0o640)
    assert (home / "second").read_bytes() == linked.read_bytes() == NEW
    assert os.getxattr(linked, "user.note") == b"kept"
    assert parts(home) == []


def test_names_that_somebody_else_could_have_made_are_cut(
    data: Client,
    control: Client,
    home: Path,
    linked: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "setting").write_text("0\n")
    monkeypatch.setattr(at, "LINKS", str(tmp_path / "setting"))
    linked.parent.chmod(0o777)
    saving = control("GET", "/v1/entry/storage/data/report").json["saving"]
    assert saving == {
        "how": "replace",
        "detail": "Its other names (hard links) keep the old contents.",
    }
    assert put(data) == 200
    assert linked.read_bytes() == NEW
    assert (home / "second").read_bytes().startswith(b"old")


def test_a_time_is_set_in_place_too(data: Client, linked: Path) -> None:
    answer = data("PUT", "/data/dav/storage/data/report", NEW, {"X-OC-Mtime": "1234567"})
    assert answer.headers["X-OC-MTime"] == "accepted"
    assert (linked.stat().st_mtime, linked.stat().st_nlink) == (1234567, 2)


def test_a_file_that_is_mounted_on_its_own(
    data: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "storage/data/report"
    file.write_bytes(b"old")
    inode = file.stat().st_ino
    monkeypatch.setattr(
        at, "mount_of", lambda each: b"folder" if stat.S_ISDIR(os.fstat(each).st_mode) else b"file"
    )
    assert put(data) == 200
    assert (file.stat().st_ino, file.read_bytes()) == (inode, NEW)


# What prevents it


def test_a_file_that_a_program_has_locked_is_left_alone(
    data: Client, home: Path, linked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_place, "LOCK_SECONDS", 0.1)
    with linked.open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_SH)
        assert put(data) == (423, "locked")
    assert linked.read_bytes().startswith(b"old")
    assert parts(home) == []
    assert put(data) == 200


def test_without_space_no_byte_is_changed(
    data: Client, home: Path, linked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_file: int, _length: int) -> None:
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(in_place, "reserve", full)
    assert put(data) == (507, "full")
    assert linked.read_bytes().startswith(b"old")
    assert parts(home) == []


def test_a_record_that_cannot_be_written_prevents_it(
    data: Client, home: Path, linked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise OSError(errno.EDQUOT, "")

    monkeypatch.setattr(Store, "save", full)
    assert put(data) == (507, "quota")
    assert linked.read_bytes().startswith(b"old")
    assert parts(home) == []


def half(part: int, file: int) -> None:
    os.pwrite(file, os.pread(part, 5, 0), 0)
    raise OSError(errno.EIO, "")


def test_what_stays_half_written_is_completed_later(
    server: FileServer, data: Client, home: Path, linked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(in_place, "_copy", half)
        assert put(data) == (507, "incomplete")
    assert linked.read_bytes() == b"new cand longer than what is new"
    assert server.files.uploads.clean() == 0
    assert (linked.read_bytes(), linked.stat().st_nlink) == (NEW, 2)
    assert parts(home) == list((home / ".slipway").rglob("*.json")) == []


@pytest.mark.parametrize("names", [("report",), ("report", "report (recovered)")])
@pytest.mark.parametrize("what", ["changed", "replaced", "gone"])
def test_what_somebody_changed_since_is_not_overwritten(
    server: FileServer,
    data: Client,
    home: Path,
    linked: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    names: tuple[str, ...],
) -> None:
    for name in names[1:]:
        linked.with_name(name).write_text("there")
    with monkeypatch.context() as patch:
        patch.setattr(in_place, "_copy", half)
        put(data)
    if what == "changed":
        linked.write_bytes(b"theirs")
        os.utime(linked, (2**31, 2**31))
    else:
        linked.unlink()
    if what == "replaced":
        linked.write_bytes(b"theirs")
    assert server.files.uploads.clean() == 0
    if what != "gone":
        assert linked.read_bytes() == b"theirs"
    recovered = f"report (recovered){' (2)' if len(names) > 1 else ''}"
    assert linked.with_name(recovered).read_bytes() == NEW
    assert parts(home) == list((home / ".slipway").rglob("*.json")) == []


@pytest.mark.parametrize("names", [1, 2])
def test_a_condition_is_checked_again_when_all_has_arrived(
    data: Client, home: Path, names: int
) -> None:
    file = home / "storage/data/report"
    file.write_bytes(b"old")
    if names > 1:
        os.link(file, home / "second")
    line = data.connection
    line.putrequest("PUT", "/data/files/storage/data/report")
    line.putheader("If-Match", etag(file.stat()))
    line.putheader("Content-Length", "8")
    line.endheaders()
    line.send(b"mine")
    while not parts(home / "storage"):
        pass
    file.write_bytes(b"theirs")
    line.send(b"mine")
    answer = line.getresponse()
    assert answer.status == 412
    answer.read()
    assert file.read_bytes() == b"theirs"
    assert parts(home) == []


# Other accounts


def uploads(roots: Roots, home: Path) -> Uploads:
    return Uploads(roots, Store([str(home / ".slipway/files/uploads")]), 48)


def save(roots: Roots, home: Path, path: str) -> None:
    """Save a file as an account's server does."""
    with roots.resolve(parse(path), to_change=True) as dentry:
        uploads(roots, home).save(dentry, Body([NEW], len(NEW)), on_conflict=REPLACE, modified=None)


@pytest.fixture
def two() -> Iterator[tuple[Path, Path, Roots]]:
    """The home of bob, a folder of somebody else's, and what bob's server gives access to."""
    with private_home() as alice:
        alice.chmod(0o755)
        bob = alice.parent / "bob"
        bob.mkdir()
        os.chown(bob, BOB.pw_uid, BOB.pw_gid)
        yield bob, alice, Roots({"home": Root("home", str(bob)), "area": Root("area", str(alice))})


def test_an_own_file_in_a_folder_that_cannot_be_written(two: tuple[Path, Path, Roots]) -> None:
    bob, alice, roots = two
    file = alice / "bobs"
    file.write_text("old")
    os.chown(file, BOB.pw_uid, BOB.pw_gid)
    inode = file.stat().st_ino
    assert done_by_bob(partial(save, roots, bob, "area/bobs")) == 0
    assert (file.read_bytes(), file.stat().st_ino) == (NEW, inode)
    assert [path for path in bob.rglob("*") if path.is_file()] == []

    def look() -> None:
        saving = described(roots, parse("area/bobs"))["saving"]
        assert saving["how"] == "in_place"
        assert "no file can be created in its folder" in saving["detail"]

    assert done_by_bob(look) == 0


@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o755])
def test_a_colleagues_file_that_may_be_written(two: tuple[Path, Path, Roots], mode: int) -> None:
    bob, alice, roots = two
    folder = alice / "folder"
    folder.mkdir()
    folder.chmod(mode)
    file = folder / "theirs"
    file.write_text("old")
    file.chmod(0o606)
    before = file.stat()
    assert done_by_bob(partial(save, roots, bob, "area/folder/theirs")) == 0
    after = file.stat()
    assert file.read_bytes() == NEW
    assert (after.st_ino, after.st_uid, after.st_mode) == (
        before.st_ino,
        before.st_uid,
        before.st_mode,
    )
    assert list(folder.iterdir()) == [file]
    assert [path for path in bob.rglob("*") if path.is_file()] == []


def test_a_colleagues_file_that_may_not_be_written(two: tuple[Path, Path, Roots]) -> None:
    _bob, alice, roots = two
    folder = alice / "folder"
    folder.mkdir()
    folder.chmod(0o777)
    (folder / "theirs").write_text("old")
    (folder / "theirs").chmod(0o644)

    def look() -> None:
        saving = described(roots, parse("area/folder/theirs"))["saving"]
        assert saving == {
            "how": "refused",
            "detail": "You may read this file, but not change it.",
        }

    assert done_by_bob(look) == 0
    assert (folder / "theirs").read_text() == "old"


def test_bits_that_saving_removes_are_said_before(control: Client, home: Path) -> None:
    file = home / "storage/data/tool"
    file.write_text("#!/bin/sh\n")
    file.chmod(0o4755)
    saving = control("GET", "/v1/entry/storage/data/tool").json["saving"]
    assert saving["how"] == "replace"
    assert "set-user-ID" in saving["detail"]
    file.chmod(0o755)
    assert control("GET", "/v1/entry/storage/data/tool").json["saving"]["detail"] == ""
    assert control("GET", "/v1/entry/storage/data").json["saving"] is None


def test_a_link_is_described_as_the_file_that_it_leads_to(control: Client, home: Path) -> None:
    (home / "storage/data/real").write_text("x")
    (home / "storage/data/link").symlink_to("real")
    (home / "storage/data/nowhere").symlink_to("none")
    assert control("GET", "/v1/entry/storage/data/link").json["saving"]["how"] == "replace"
    assert control("GET", "/v1/entry/storage/data/nowhere").json["saving"]["how"] == "refused"
