"""Shares of storage folders, on a real file system with access control lists."""

from __future__ import annotations

import grp
import os
import pwd
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server import at
from portal.node.file_server.access import posix_acl
from portal.node.file_server.access.posix_acl import GROUP, USER, Acl
from portal.node.file_server.sharing import shares
from tests.unit.node.file_server.conftest import Client

BOB = pwd.getpwnam("nobody")
STAFF = grp.getgrnam("daemon")
FOLDER = "/v1/shares/storage/data"


@pytest.fixture
def folder(home: Path) -> Path:
    for path, mode in ((home, 0o700), (home / "storage", 0o755), (home / "storage/data", 0o750)):
        path.chmod(mode)
    return home / "storage" / "data"


def acl(path: Path, attribute: str = posix_acl.ACCESS) -> Acl | None:
    return posix_acl.read(str(path), attribute)


def give(control: Client, access: str, name: str = BOB.pw_name, kind: str = "user") -> Any:
    answer = control("PUT", FOLDER, {"kind": kind, "name": name, "access": access})
    assert answer.status == 200, answer.json
    return answer.json


def take_back(control: Client, name: str = BOB.pw_name, kind: str = "user") -> Any:
    answer = control("DELETE", f"{FOLDER}?kind={kind}&name={name}")
    assert answer.status == 200, answer.json
    return answer.json


def test_a_read_only_share_covers_what_is_there_and_what_comes(
    control: Client, folder: Path
) -> None:
    (folder / "sub").mkdir(mode=0o700)
    (folder / "sub" / "run.sh").touch(0o700)
    (folder / "notes.txt").touch(0o600)
    assert give(control, "read")["done"] == 4
    bob = (USER, BOB.pw_uid)
    assert acl(folder) == Acl(7, 5, 0, {bob: 5}, mask=5)
    assert acl(folder, posix_acl.DEFAULT) == Acl(7, 5, 0, {bob: 5}, mask=5)
    assert acl(folder / "sub" / "run.sh") == Acl(7, 0, 0, {bob: 5}, mask=5)
    assert acl(folder / "notes.txt") == Acl(6, 0, 0, {bob: 4}, mask=4)
    (folder / "later.txt").touch(0o666)
    later = acl(folder / "later.txt")
    assert later
    assert later.named[bob] & (later.mask or 0) == 4
    listed = control("GET", FOLDER).json
    assert listed["shares"] == [{"kind": "user", "name": BOB.pw_name, "access": "read"}]
    assert listed["change"]["running"] is False


def test_on_the_way_down_only_passing_is_permitted(control: Client, folder: Path) -> None:
    before = folder.parent.parent.parent.stat()
    give(control, "read")
    assert acl(folder.parent.parent) == Acl(7, 0, 0, {(USER, BOB.pw_uid): 1}, mask=1)
    assert acl(folder.parent) is None  # everybody may pass there already
    after = folder.parent.parent.parent.stat()
    assert (after.st_mode, after.st_ctime_ns) == (before.st_mode, before.st_ctime_ns)


def test_all_is_as_before_when_the_last_share_is_taken_back(control: Client, folder: Path) -> None:
    (folder / "a.txt").touch(0o640)
    folder.parent.chmod(0o711)
    (folder.parent / "more").mkdir()
    give(control, "write")
    give(control, "read", STAFF.gr_name, "group")
    for path in (folder.parent / "more", folder):
        where = f"/v1/shares/storage/{path.name}"
        control("PUT", where, {"kind": "user", "name": BOB.pw_name, "access": "read"})
    take_back(control)
    assert acl(folder.parent.parent) == Acl(
        7, 0, 0, {(USER, BOB.pw_uid): 1, (GROUP, STAFF.gr_gid): 1}, mask=1
    )
    take_back(control, STAFF.gr_name, "group")
    control("DELETE", f"/v1/shares/storage/more?kind=user&name={BOB.pw_name}")
    for path in (folder, folder / "a.txt", folder.parent, folder.parent.parent):
        assert acl(path) is None, path
        assert not path.is_dir() or acl(path, posix_acl.DEFAULT) is None
    modes = [path.stat().st_mode & 0o777 for path in (folder, folder / "a.txt", folder.parents[1])]
    assert modes == [0o750, 0o640, 0o700]


def test_who_may_write_leaves_the_owner_access_to_what_is_created(
    control: Client, folder: Path
) -> None:
    give(control, "write")
    default = acl(folder, posix_acl.DEFAULT)
    assert default == Acl(7, 5, 0, {(USER, BOB.pw_uid): 7, (USER, os.geteuid()): 7}, mask=7)
    assert [share["access"] for share in control("GET", FOLDER).json["shares"]] == ["write"]


def test_a_name_that_does_not_exist_is_answered_like_one_that_does(
    control: Client, folder: Path
) -> None:
    (folder / "a.txt").touch()
    for kind, name in (("user", BOB.pw_name), ("group", STAFF.gr_name)):
        known, unknown = give(control, "read", name, kind), give(control, "read", "n0-such", kind)
        assert unknown.pop("name") == "n0-such"
        known.pop("name")
        assert unknown == known
        gone, never = take_back(control, name, kind), take_back(control, "n0-such", kind)
        assert gone.pop("name") != never.pop("name")
        assert gone == never


def test_no_link_is_followed_and_no_foreign_file_is_changed(
    control: Client, folder: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o600)
    (folder / "link").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    (folder / "theirs").touch(0o600)
    os.chown(folder / "theirs", BOB.pw_uid, BOB.pw_gid)
    found = give(control, "write")
    assert (found["done"], found["others"]) == (1, {"count": 1, "names": ["theirs"]})
    assert acl(secret) is None
    assert acl(folder / "theirs") is None


def test_a_second_name_of_a_file_is_not_shared_where_anybody_can_make_one(
    control: Client, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "protected_hardlinks"
    setting.write_text("0\n")
    monkeypatch.setattr(at, "LINKS", str(setting))
    (tmp_path / "secret").touch(0o600)
    os.link(tmp_path / "secret", folder / "found")
    assert give(control, "read")["others"] == {"count": 1, "names": ["found"]}
    assert acl(tmp_path / "secret") is None


def test_what_becomes_readable_in_passing_is_said(control: Client, folder: Path) -> None:
    (folder.parent / "other").mkdir(mode=0o755)
    (folder.parent / "private").mkdir(mode=0o700)
    (folder.parents[1] / "public.txt").touch(0o644)
    found = give(control, "read")["exposed"]
    assert found == {"count": 2, "names": ["other", "public.txt"]}


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("storage/none", 404, "not_found"),
        ("storage/file", 404, "not_found"),
        ("storage/link", 409, "link"),
        ("storage/data/sub", 409, "place"),
        ("home/storage", 409, "place"),
        ("storage", 409, "place"),
        ("storage/theirs", 403, "permission"),
    ],
)
def test_only_own_storage_folders_can_be_shared(
    control: Client, folder: Path, path: str, status: int, code: str
) -> None:
    (folder.parent / "file").touch()
    (folder.parent / "link").symlink_to(folder)
    (folder.parent / "theirs").mkdir()
    os.chown(folder.parent / "theirs", BOB.pw_uid, BOB.pw_gid)
    wanted = {"kind": "user", "name": BOB.pw_name, "access": "read"}
    answer = control("PUT", f"/v1/shares/{path}", wanted)
    assert (answer.status, answer.json["code"]) == (status, code)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "everyone"),
        ("name", ""),
        ("name", "a:b"),
        ("name", "x" * 256),
        ("name", 7),
        ("name", "a\nb"),
        ("access", "execute"),
        ("name", pwd.getpwuid(os.geteuid()).pw_name),
    ],
)
def test_a_wrong_request_names_its_field(
    control: Client, folder: Path, field: str, value: object
) -> None:
    wanted = {"kind": "user", "name": BOB.pw_name, "access": "read", field: value}
    answer = control("PUT", f"/v1/shares/storage/{folder.name}", wanted)
    assert (answer.status, answer.json["field"]) == (422, field)


def test_a_large_folder_goes_on_in_the_background(
    control: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "WAIT_SECONDS", 0.0)
    refused, last_step = threading.Event(), shares._let_pass

    def let_pass(*arguments: Any) -> None:
        assert refused.wait(20)
        last_step(*arguments)

    monkeypatch.setattr(shares, "_let_pass", let_pass)
    for number in range(3000):
        (folder / str(number)).touch()
    wanted = {"kind": "user", "name": BOB.pw_name, "access": "read"}
    assert control("PUT", FOLDER, wanted).status == 202
    assert control("PUT", FOLDER, wanted).json["code"] == "busy"
    refused.set()
    deadline = time.monotonic() + 20
    while (change := control("GET", FOLDER).json["change"])["running"]:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert change["done"] == 3001
    assert acl(folder / "2999")


def test_without_access_control_lists_the_answer_says_so(
    control: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posix_acl, "is_supported", lambda path: False)
    assert control("GET", f"/v1/shares/storage/{folder.name}").json["code"] == "unsupported"
