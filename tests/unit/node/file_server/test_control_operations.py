"""Operations as the portal sees them: by HTTP, with real files."""

from __future__ import annotations

import errno
import os
import pwd
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server import renames
from portal.node.file_server.copy_data import copy_data
from portal.node.file_server.operations import manager, operation
from portal.node.file_server.operations.kinds import copying
from portal.node.file_server.server import FileServer
from tests.unit.node.file_server.conftest import Client


def finish(control: Client, found: Any, seconds: float = 20.0) -> Any:
    """The operation at its end."""
    deadline = time.monotonic() + seconds
    while found["state"] in ("waiting", "running"):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
        found = control("GET", f"/v1/operations/{found['id']}").json
    return found


def operate(control: Client, kind: str, items: list[str], to: str = "", **more: str) -> Any:
    """Start an operation and wait for its end."""
    body = {"kind": kind, "items": items, **({"to": to} if to else {}), **more}
    answer = control("POST", "/v1/operations", body)
    assert answer.status == 202, answer.body
    return finish(control, answer.json)


def refused(control: Client, **body: Any) -> tuple[int, str, str]:
    """Status, code and field of a refusal."""
    found = control("POST", "/v1/operations", body)
    return found.status, found.json["code"], found.json["field"]


def make_tree(folder: Path) -> None:
    (folder / "deep" / "deeper").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "deep" / "b.txt").write_text("bb")
    (folder / "deep" / "deeper" / "c.txt").write_text("ccc")
    (folder / "link").symlink_to("deep/b.txt")


def test_a_folder_is_copied_with_links_permissions_and_times(control: Client, home: Path) -> None:
    make_tree(home / "source")
    (home / "source" / "a.txt").chmod(0o640)
    os.utime(home / "source" / "a.txt", ns=(5, 1_600_000_000_123_456_789))
    os.utime(home / "source" / "deep", ns=(5, 1_500_000_000_000_000_000))
    os.setxattr(home / "source" / "a.txt", "user.colour", b"blue")
    found = operate(control, "copy", ["home/source"], "home/storage")
    assert (found["state"], found["files"], found["bytes"]) == ("done", 4, 6)
    assert (found["files_total"], found["bytes_total"]) == (4, 6)
    assert (found["problems"], found["detail"]) == ([], "4 files copied.")
    copy = home / "storage" / "source"
    assert (copy / "deep" / "deeper" / "c.txt").read_text() == "ccc"
    assert (copy / "link").readlink() == Path("deep/b.txt")
    assert (copy / "a.txt").stat().st_mode & 0o7777 == 0o640
    assert (copy / "a.txt").stat().st_mtime_ns == 1_600_000_000_123_456_789
    assert (copy / "deep").stat().st_mtime_ns == 1_500_000_000_000_000_000
    assert os.getxattr(copy / "a.txt", "user.colour") == b"blue"
    assert sorted(os.listdir(home / "storage")) == ["data", "source"]


def test_a_move_in_one_file_system_is_a_rename(control: Client, home: Path) -> None:
    make_tree(home / "source")
    inode = (home / "source" / "a.txt").stat().st_ino
    found = operate(control, "move", ["home/source"], "storage/data")
    assert (found["state"], found["files"], found["files_total"]) == ("done", 1, 1)
    assert (home / "storage/data/source/a.txt").stat().st_ino == inode
    assert not (home / "source").exists()


def test_a_folder_is_deleted_and_what_links_lead_to_is_not(control: Client, home: Path) -> None:
    make_tree(home / "source")
    (home / "kept").mkdir()
    (home / "kept" / "file").write_text("kept")
    (home / "source" / "out").symlink_to(home / "kept")
    (home / "source" / ".slipway-abc").write_text("an upload that nobody goes on with")
    found = operate(control, "delete", ["home/source", "home/gone"])
    assert (found["state"], found["files"], found["problem_count"]) == ("done", 6, 0)
    assert not (home / "source").exists()
    assert (home / "kept" / "file").read_text() == "kept"


def test_permissions_of_a_tree(control: Client, home: Path) -> None:
    make_tree(home / "source")
    (home / "source" / "deep" / "run.sh").write_text("#!/bin/sh")
    (home / "source" / "deep" / "run.sh").chmod(0o755)
    (home / "source" / "deep").chmod(0o2700)
    found = operate(control, "mode", ["home/source"], mode="750")
    assert found["state"] == "done"

    def mode(path: str) -> int:
        return (home / "source" / path).lstat().st_mode & 0o7777

    assert [mode(""), mode("deep"), mode("deep/deeper")] == [0o750, 0o2750, 0o750]
    assert [mode("a.txt"), mode("deep/run.sh"), mode("link")] == [0o640, 0o750, 0o777]
    operate(control, "mode", ["home/source"], mode="440")
    assert [mode(""), mode("deep"), mode("a.txt")] == [0o550, 0o2550, 0o440]


def test_a_name_that_is_taken_is_answered_at_once(control: Client, home: Path) -> None:
    (home / "a.txt").write_text("new")
    (home / "storage" / "a.txt").write_text("old")
    items = ["home/a.txt"]
    answer = control(
        "POST", "/v1/operations", {"kind": "copy", "items": items, "to": "home/storage"}
    )
    assert (answer.status, answer.json["code"], answer.json["field"]) == (
        409,
        "exists",
        "on_conflict",
    )
    assert answer.json["detail"] == "The destination has “a.txt” already."
    assert (home / "storage" / "a.txt").read_text() == "old"


def test_a_name_that_is_taken_gets_a_number_or_is_replaced_or_skipped(
    control: Client, home: Path
) -> None:
    (home / "a.txt").write_text("new")
    (home / "storage" / "a.txt").write_text("old")
    for number in (2, 3):
        operate(control, "copy", ["home/a.txt"], "home/storage", on_conflict="rename")
        assert (home / "storage" / f"a ({number}).txt").read_text() == "new"
    found = operate(control, "copy", ["home/a.txt"], "home/storage", on_conflict="skip")
    assert (found["files"], found["skipped"]) == (0, 1)
    assert (home / "storage" / "a.txt").read_text() == "old"
    operate(control, "move", ["home/a.txt"], "home/storage", on_conflict="replace")
    assert (home / "storage" / "a.txt").read_text() == "new"
    assert not (home / "a.txt").exists()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_folder_replaces_a_folder_with_all_that_it_contains(
    control: Client, home: Path, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    if not at_once:  # NFS cannot exchange names

        def unsupported(*_: object) -> None:
            raise OSError(errno.EINVAL, "unsupported")

        monkeypatch.setattr(renames, "_renameat2", unsupported)
    make_tree(home / "source")
    (home / "storage" / "source").mkdir()
    for kind in ("copy", "move"):
        (home / "storage" / "source" / "old.txt").write_text("old")
        found = operate(control, kind, ["home/source"], "home/storage", on_conflict="replace")
        assert (found["state"], found["problems"]) == ("done", []), kind
        names = sorted(os.listdir(home / "storage" / "source"))
        assert names == ["a.txt", "deep", "link"]
        assert sorted(os.listdir(home / "storage")) == ["data", "source"]
    assert not (home / "source").exists()


def test_a_file_does_not_replace_a_folder(control: Client, home: Path) -> None:
    (home / "data").write_text("a file")
    found = operate(control, "copy", ["home/data"], "home/storage", on_conflict="replace")
    assert found["problems"] == [
        {
            "path": "home/data",
            "name": "data",
            "detail": "“data” in the destination is a folder.",
        }
    ]
    assert (home / "storage" / "data").is_dir()


def test_nothing_is_replaced_by_a_part_of_itself(control: Client, home: Path) -> None:
    (home / "a" / "a").mkdir(parents=True)
    (home / "a" / "a" / "file").write_text("x")
    for kind in ("copy", "move"):
        found = operate(control, kind, ["home/a/a"], "home", on_conflict="replace")
        assert [problem["detail"] for problem in found["problems"]] == [
            "“a” in the destination contains what would replace it."
        ]
        found = operate(control, kind, ["home/a/a"], "home/a", on_conflict="replace")
    assert (home / "a" / "a" / "file").read_text() == "x"


def test_a_folder_does_not_go_into_itself(control: Client, home: Path) -> None:
    make_tree(home / "source")
    (home / "short").symlink_to("source/deep")
    for kind in ("copy", "move"):
        for to in ("home/source", "home/source/deep/deeper", "home/short"):
            body = {"kind": kind, "items": ["home/source"], "to": to}
            assert refused(control, **body) == (409, "into_itself", "to")
    assert (home / "source" / "a.txt").exists()


def test_storage_areas_and_what_leads_to_them_remain(
    control: Client, data: Client, home: Path
) -> None:
    for item in ("home", "storage", "home/storage"):
        assert refused(control, kind="delete", items=[item])[:2] == (409, "root")
    assert refused(control, kind="move", items=["home/storage"], to="storage/data")[1] == (
        "into_itself"
    )
    (home / "other").mkdir()
    assert refused(control, kind="move", items=["home/storage"], to="home/other")[1] == "root"
    assert control("POST", "/v1/rename/home/storage", {"name": "x"}).json["code"] == "root"
    assert data("DELETE", "/data/dav/home/storage").json["code"] == "root"
    moved = {"Destination": "/data/dav/home/other/storage"}
    assert data("MOVE", "/data/dav/home/storage", headers=moved).json["code"] == "root"
    assert (home / "storage" / "data").is_dir()
    assert operate(control, "delete", ["storage/data"])["state"] == "done"


def test_what_others_share_is_copied_and_remains_theirs(
    control: Client, home: Path, tmp_path: Path
) -> None:
    owner = pwd.getpwnam("daemon")
    theirs = tmp_path / "daemon" / "storage" / "data"
    theirs.mkdir(parents=True)
    (theirs / "file").write_text("theirs")
    os.chown(theirs, owner.pw_uid, owner.pw_gid)
    item = "shared/daemon/data"
    assert operate(control, "copy", [item], "home/storage/data")["state"] == "done"
    assert (home / "storage" / "data" / "data" / "file").read_text() == "theirs"
    for body in (
        {"kind": "delete"},
        {"kind": "move", "to": "home"},
        {"kind": "mode", "mode": "700"},
    ):
        assert refused(control, items=[item], **body) == (409, "root", "items")
    assert control("POST", f"/v1/rename/{item}", {"name": "mine"}).json["code"] == "root"
    assert (theirs / "file").read_text() == "theirs"
    assert refused(control, kind="copy", items=["shared/daemon/none"], to="home")[0] == 404


def test_operations_that_hang_do_not_hold_up_others_for_ever(
    control: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def hang(source: int, target: int, progress: Callable[[int], None]) -> int:
        release.wait(20)
        return copy_data(source, target, progress)

    monkeypatch.setattr(copying, "copy_data", hang)
    monkeypatch.setattr(manager, "STUCK_SECONDS", 0.3)
    monkeypatch.setattr(manager, "ANSWER_SECONDS", 0.05)
    monkeypatch.setattr(operation, "HANGING_SECONDS", 0)
    for number in range(4):
        (home / f"{number}").write_text("x")
        body = {"kind": "copy", "items": [f"home/{number}"], "to": "home/storage"}
        control("POST", "/v1/operations", body)
    (home / "last").write_text("x")
    found = control("POST", "/v1/operations", {"kind": "delete", "items": ["home/last"]}).json
    time.sleep(0.4)
    listed = control("GET", "/v1/operations").json["operations"]
    assert finish(control, found)["state"] == "done"
    assert listed[1]["detail"] == "The file system has not answered for 0 seconds."
    release.set()
    for each in listed[1:]:
        assert finish(control, each)["state"] == "done"


def test_words_that_are_wrong_name_their_field(control: Client, home: Path) -> None:
    (home / "a").write_text("")
    fine = {"kind": "copy", "items": ["home/a"], "to": "home/storage"}
    for change, field in (
        ({"kind": "burn"}, "kind"),
        ({"items": []}, "items"),
        ({"items": [1]}, "items"),
        ({"items": ["home/../x"]}, "items"),
        ({"items": ["home/none"]}, "items"),
        ({"items": ["nowhere/a"]}, "items"),
        ({"to": ""}, "to"),
        ({"to": "home/a"}, "to"),
        ({"to": "home/none"}, "to"),
        ({"on_conflict": "merge"}, "on_conflict"),
        ({"kind": "mode", "mode": "99"}, "mode"),
        ({"kind": "mode"}, "mode"),
    ):
        assert refused(control, **{**fine, **change})[2] == field, change
    assert control("POST", "/v1/operations", b"[]").status == 422


def test_operations_are_listed_and_an_unknown_one_is_missing(control: Client, home: Path) -> None:
    (home / "a").write_text("a")
    first = operate(control, "copy", ["home/a"], "home/storage")
    second = operate(control, "delete", ["home/a"])
    found = control("GET", "/v1/operations").json["operations"]
    assert [each["id"] for each in found] == [second["id"], first["id"]]
    assert control("GET", "/v1/operations/0123456789abcdef").status == 404
    assert control("DELETE", "/v1/operations/0123456789abcdef").status == 404


def test_a_cancelled_copy_leaves_nothing_incomplete(
    control: Client, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "first").write_text("first")
    (home / "source").mkdir()
    for number in range(200):
        (home / "source" / f"{number}").write_bytes(b"x" * 2000)

    def slow(source: int, target: int, progress: Callable[[int], None]) -> int:
        time.sleep(0.02)
        return copy_data(source, target, progress)

    monkeypatch.setattr(copying, "copy_data", slow)
    body = {"kind": "copy", "items": ["home/first", "home/source"], "to": "home/storage"}
    started = control("POST", "/v1/operations", body).json
    assert (started["state"], started["files_total"]) == ("running", 201)
    assert 0 < started["files"] < 201
    found = control("DELETE", f"/v1/operations/{started['id']}").json
    found = finish(control, found)
    assert (found["state"], found["current"]) == ("cancelled", "")
    files = found["files"]
    assert found["detail"] == (
        f"Cancelled. {files} files were copied before. Items that were not complete are not there."
    )
    assert sorted(os.listdir(home / "storage")) == ["data", "first"]
    again = control("DELETE", f"/v1/operations/{started['id']}").json
    assert (again["state"], again["files"]) == ("cancelled", files)


def test_four_run_at_once_and_a_waiting_one_can_be_cancelled(
    control: Client, home: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        with open(home / f"big{number}", "wb") as file:
            file.write(b"x")
            file.truncate(1 << 40)
    slow = []
    original = os.lseek
    hold = True

    def stuck(fd: int, position: int, how: int) -> int:
        while hold and how == os.SEEK_DATA:
            time.sleep(0.01)
        return original(fd, position, how)

    monkeypatch.setattr(os, "lseek", stuck)
    try:
        for number in range(5):
            body = {"kind": "copy", "items": [f"home/big{number}"], "to": "home/storage"}
            slow.append(control("POST", "/v1/operations", body).json)
        assert [each["state"] for each in slow] == ["running"] * 4 + ["waiting"]
        gone = control("DELETE", f"/v1/operations/{slow[4]['id']}").json
        assert (gone["state"], gone["detail"]) == ("cancelled", "Cancelled before it began.")
        assert server.files.operations.is_busy
    finally:
        hold = False
    for each in slow[:4]:
        assert finish(control, each)["state"] == "done"
    assert not (home / "storage" / "big4").exists()
