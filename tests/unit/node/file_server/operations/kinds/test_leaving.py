"""What is moved out of a shared folder loses the access of those whom it is shared with."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from portal.node.file_server import renames
from portal.node.file_server.access import posix_acl
from portal.node.file_server.operations.kinds import placing
from tests.support.other_account import BOB, files_of, private_home, readable_by_bob
from tests.unit.node.file_server.conftest import Client

ENTRY = (posix_acl.USER, BOB.pw_uid)


@pytest.fixture
def home() -> Iterator[Path]:
    with private_home() as folder:
        for name in ("data", "other", "mine"):
            (folder / "storage" / name / "sub" / "deep").mkdir(parents=True)
            for path in ("file", "sub/file", "sub/deep/file"):
                (folder / "storage" / name / path).write_text(name)
        yield folder


@pytest.fixture
def shared(control: Client, home: Path) -> Path:
    """A folder that is shared with bob, as is another one, so that he can pass on the way."""
    body = {"kind": "user", "name": BOB.pw_name, "access": "write"}
    for name in ("data", "other"):
        assert control("PUT", f"/v1/shares/storage/{name}", body).status == 200
    assert len(readable_by_bob(files_of(home))) == 6
    return home / "storage" / "data"


Move = Callable[[Client, Client, str, str], None]


def by_operation(control: Client, _: Client, path: str, to: str) -> None:
    found = control("POST", "/v1/operations", {"kind": "move", "items": [path], "to": to}).json
    assert (found["state"], found["problems"]) == ("done", [])


def by_webdav(_: Client, data: Client, path: str, to: str) -> None:
    target = {"Destination": f"/data/dav/{to}/{path.rpartition('/')[2]}"}
    found = data("MOVE", f"/data/dav/{path}", headers=target)
    assert found.status == 201, found.body


DOORS = pytest.mark.parametrize("move", [by_operation, by_webdav])


@DOORS
@pytest.mark.parametrize("path", ["storage/data", "storage//data", "home/storage/data"])
def test_out_of_it_access_ends(
    control: Client, data: Client, home: Path, shared: Path, path: str, move: Move
) -> None:
    (home / "storage/mine/sub/file").unlink()
    move(control, data, f"{path}/sub", "home")
    move(control, data, f"{path}/file", "storage/mine/sub")
    moved = [home / "sub" / "file", home / "sub" / "deep" / "file", home / "storage/mine/sub/file"]
    assert [p.read_text() for p in moved] == ["data", "data", "data"]
    assert readable_by_bob(moved) == set()
    for each in (home / "sub", home / "sub" / "deep", *moved):
        assert posix_acl.read(str(each)) is None
        assert stat.S_IMODE(each.stat().st_mode) == (0o700 if each.is_dir() else 0o600)
    assert posix_acl.read(str(home / "sub"), posix_acl.DEFAULT) is None
    assert list(shared.iterdir()) == []


@DOORS
def test_the_folder_of_another_share_gives_its_own_access_alone(
    control: Client, data: Client, home: Path, shared: Path, move: Move
) -> None:
    (home / "storage/other/sub/deep/file").unlink()
    move(control, data, "storage/data/file", "storage/other/sub/deep")
    moved = home / "storage/other/sub/deep/file"
    assert moved.read_text() == "data"
    assert readable_by_bob([moved]) == {moved}
    control("DELETE", f"/v1/shares/storage/other?kind=user&name={BOB.pw_name}")
    assert readable_by_bob([moved]) == set()


@DOORS
def test_inside_of_it_access_stays(control: Client, data: Client, shared: Path, move: Move) -> None:
    move(control, data, "storage/data/sub/deep", "home/storage/data")
    assert readable_by_bob([shared / "deep" / "file"]) == {shared / "deep" / "file"}


@DOORS
def test_out_of_a_folder_that_is_not_shared_lists_are_kept(
    control: Client, data: Client, home: Path, move: Move
) -> None:
    item = home / "storage" / "mine" / "sub"
    own = posix_acl.grant(posix_acl.of_mode(0o700), ENTRY, 5)
    posix_acl.write(str(item), own)
    move(control, data, "storage/mine/sub", "home")
    assert posix_acl.read(str(home / "sub")) == own


@DOORS
def test_while_access_is_being_ended_it_ends_for_what_leaves_too(
    control: Client, data: Client, home: Path, shared: Path, move: Move
) -> None:
    """As a crash during the first walk leaves it: the folder itself is closed, its files not."""
    acl = posix_acl.read(str(shared))
    assert acl
    posix_acl.write(str(shared), posix_acl.revoke(posix_acl.revoke(acl, ENTRY), (2, os.geteuid())))
    found = control("GET", "/v1/shares/storage/data").json
    assert (found["shares"], found["ending"]) == (
        [], [{"kind": "user", "name": BOB.pw_name}]
    )  # fmt: skip
    gone = {"Destination": "/data/dav/home/data"}
    assert data("MOVE", "/data/dav/storage/data", headers=gone).json["code"] == "shared"
    move(control, data, "storage/data/sub", "home")
    assert readable_by_bob(files_of(home / "sub")) == set()


def test_access_ends_before_the_rename(
    control: Client, home: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(placing, "rename_new", crash)
    control("POST", "/v1/operations", {"kind": "move", "items": ["storage/data/sub"], "to": "home"})
    assert readable_by_bob(files_of(shared)) == {shared / "file"}


def test_what_others_put_in_its_place_before_the_rename_is_closed_too(
    data: Client, home: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = renames.rename_new

    def exchanged(folder: int, name: bytes, to: int, new: bytes) -> None:
        (shared / "sub").rename(shared / "aside")
        (shared / "second").rename(shared / "sub")
        rename(folder, name, to, new)

    (shared / "second").mkdir()
    (shared / "second" / "more").mkdir()
    (shared / "second" / "more" / "file").write_text("second")
    monkeypatch.setattr(placing, "rename_new", exchanged)
    by_webdav(data, data, "storage/data/sub", "home")
    moved = home / "sub" / "more" / "file"
    assert moved.read_text() == "second"
    assert readable_by_bob([moved]) == set()


def test_what_cannot_be_looked_into_is_not_moved(
    control: Client, home: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("portal.node.file_server.access.walk.DEEPEST", 1)
    order = {"kind": "move", "items": ["storage/data/sub"], "to": "home"}
    (problem,) = control("POST", "/v1/operations", order).json["problems"]
    assert problem["detail"].startswith("“deep” cannot be looked into")
    assert not (home / "sub").exists()


def test_files_of_others_and_links_are_moved_as_they_are(
    control: Client, data: Client, home: Path, shared: Path
) -> None:
    theirs = shared / "sub" / "theirs"
    theirs.write_text("x")
    os.chown(theirs, BOB.pw_uid, BOB.pw_gid)
    (shared / "sub" / "link").symlink_to("/etc/passwd")
    by_webdav(control, data, "storage/data/sub", "home")
    assert (home / "sub" / "theirs").stat().st_uid == BOB.pw_uid
    assert os.readlink(home / "sub" / "link") == "/etc/passwd"
