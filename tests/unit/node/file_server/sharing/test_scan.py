"""The portal's list is compared with the lists of the storage folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.access import posix_acl
from portal.node.file_server.server import FileServer
from portal.node.file_server.sharing import scan
from tests.support.other_account import BOB
from tests.unit.node.file_server.conftest import Client

READ = {"kind": "user", "name": BOB.pw_name, "access": "read"}


def row(folder: str, name: str = BOB.pw_name, kind: str = "user") -> dict[str, str]:
    return {"folder": folder, "kind": kind, "name": name}


def compare(control: Client, *listed: dict[str, str]) -> Any:
    found = control("POST", "/v1/shares", {"listed": listed})
    assert found.status == 200, found.json
    return found.json


@pytest.fixture
def folders(home: Path) -> Path:
    storage = home / "storage"
    for name in ("a b", "theirs"):
        (storage / name).mkdir()
    (storage / "link").symlink_to("data")
    (storage / "file").touch()
    shared = posix_acl.grant(posix_acl.of_mode(0o700), (posix_acl.USER, BOB.pw_uid), 5)
    for name in ("a b", "theirs"):
        posix_acl.write(str(storage / name), shared)
    os.chown(storage / "theirs", BOB.pw_uid, BOB.pw_gid)
    return storage


@pytest.mark.usefixtures("folders")
def test_what_is_there_is_listed_and_what_is_not_is_named(control: Client) -> None:
    found = compare(
        control,
        row("a%20b"),
        row("data"),
        row("gone"),
        row("link"),
        row("data", "n0-such"),
        row("gone", "n0-such"),
        row("a%20b", "daemon", "group"),
    )
    assert found == {
        "shares": [{"folder": "a%20b", **READ}],
        "missing": [2, 3, 5],
        "ended": [1, 6],
    }


def test_a_folder_whose_access_is_changed_or_unreadable_is_neither(
    control: Client, folders: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = (folders / "data").stat()
    server.files.roots.holds.begin_change((status.st_dev, status.st_ino), 4)
    assert compare(control, row("data"))["ended"] == []
    server.files.roots.holds.end_change((status.st_dev, status.st_ino))

    def fails(*_: object) -> None:
        raise OSError(5, "an error of the disk")

    monkeypatch.setattr(scan, "scheme_of", fails)
    assert compare(control, row("data"), row("a%20b"))["ended"] == []


def test_what_was_not_reached_is_not_missing(
    control: Client, folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folders.is_dir()
    monkeypatch.setattr(scan, "SECONDS", -1.0)
    assert compare(control, row("gone")) == {"shares": [], "missing": [], "ended": []}


def test_a_storage_that_is_away_says_so(control: Client, home: Path) -> None:
    (home / "storage").rename(home / "away")
    assert control("POST", "/v1/shares", {"listed": [row("data")]}).status == 404


@pytest.mark.parametrize(
    "listed", [None, 7, ["x", 7], [{}], [{"folder": 7, "kind": [], "name": {}}]]
)
def test_a_wrong_list_changes_nothing(control: Client, listed: object) -> None:
    assert control("POST", "/v1/shares", {"listed": listed}).json["ended"] == []
