"""Names in any language: one rule for making, renaming, copying, sharing and mounting folders."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from urllib.parse import quote, quote_from_bytes

import pytest

from portal.core.auth.person import Person
from portal.core.files.in_session import location_of, path_in_session
from portal.core.files.shares import ShareKey
from portal.core.launch.mounts import Mount
from portal.core.launch.request import parse_launch
from portal.errors import InvalidRequest
from portal.services.files.files import Files
from portal.services.files.shares import FolderShares
from tests.support.fakes import World, make_world
from tests.support.stored_sessions import numbered_session
from tests.unit.web.conftest import make_settings

ALICE = Person("alice", False, "1")
NFC = "café"
NFD = unicodedata.normalize("NFD", NFC)
NAMES = [
    "über", "데이터", "Größen 2026 (2)", "a b", "🧪 data", NFC, NFD, "x" * 255, "ä" * 127 + "x",
    "-rf", "--", "a ", " a", "50%", "a%20b", "x?y#z&w", "a'b\"c", "a\\b", "$HOME", "a:ro", "a+b",
    "~", "[!.]*", "שלום", "e\u0301\u0302", "a;b|c",
]  # fmt: skip
UNMOUNTABLE = ["home", ".hidden", "a\nb", "\n", "a\tb", "a\u2028b", "\x7f", "\x85"]
"""Names of folders that a file system permits, and no session can use."""
INVALID = ["", ".", "..", "a/b", "ä" * 128, "x" * 256, "a\0b"]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(make_settings(tmp_path))


@pytest.fixture
def files(world: World) -> Files:
    return world.services.files


@pytest.fixture
def shares(world: World) -> FolderShares:
    return world.services.shares


@pytest.fixture
def storage(world: World) -> Path:
    return world.file_servers.home("alice") / "storage"


def at(name: str | bytes) -> str:
    return f"storage/{quote_from_bytes(os.fsencode(name), safe='')}"


def names(files: Files, location: str) -> set[str]:
    entries = files.list(ALICE, location, {"hidden": "true", "limit": 1000}).entries
    return {entry.name for entry in entries}


@pytest.mark.parametrize("name", NAMES)
def test_one_name_by_all_ways(
    world: World, files: Files, shares: FolderShares, storage: Path, name: str
) -> None:
    # Made on the Files page, and by the API for what sessions mount.
    assert files.make_folder(ALICE, at(name)).name == name
    assert world.services.storage.make(ALICE, name).problem == ""
    assert os.listdir(storage) == [name]
    # Renamed, and back.
    shares.rename(ALICE, at(name), "other")
    entry = shares.rename(ALICE, at("other"), name)
    assert (entry.name, os.listdir(storage)) == (name, [name])
    # Copied beside itself: the new name can be mounted, too.
    (storage / name / "file").write_text("x")
    order = {"kind": "copy", "items": [entry.path], "to": "storage", "on_conflict": "rename"}
    assert files.operate(ALICE, order).state == "done"
    (copy,) = names(files, "storage") - {name}
    assert copy.endswith((" (2)", " (3)"))
    assert len(copy.encode()) <= 255
    # Shared, and found again under the same name.
    shares.share(ALICE, ShareKey("alice", name, "user", "nobody"), "read")
    listed, _ = shares.of_folder(ALICE, name)
    assert [share.key.folder for share in listed] == [name]
    assert [folder.name for folder in shares.with_me(Person("nobody", False, "2"))] == [
        f"alice/{name}"
    ]
    use = shares.uses(ALICE, entry.path)
    assert use is not None
    assert use.folder == name
    # Mounted, by its owner and by the other one.
    for folder, place in ((name, "storage"), (copy, "storage"), (f"alice/{name}", "shared/alice")):
        launch = parse_launch(
            {
                "environment": "python",
                "resources": {"cpus": 1, "memory": "600m"},
                "mounts": [{"folder": folder}],
            }
        )
        assert launch.mounts[0].folder == folder
        session = numbered_session(1, mounts=launch.mounts)
        location = location_of(launch.mounts[0])
        assert location.startswith(f"{place}/")
        assert path_in_session(session, f"{location}/file", "storage").endswith("/file")


def test_both_forms_of_a_letter_are_two_names(files: Files, storage: Path) -> None:
    for name in (NFC, NFD):
        files.make_folder(ALICE, at(name))
    assert names(files, "storage") == {NFC, NFD}
    assert len(os.listdir(storage)) == 2
    assert [Mount(folder=name).folder for name in (NFC, NFD)] == [NFC, NFD]


@pytest.mark.parametrize("name", UNMOUNTABLE)
def test_a_name_that_no_session_can_mount_is_refused_with_the_reason(
    world: World, files: Files, shares: FolderShares, storage: Path, name: str
) -> None:
    files.make_folder(ALICE, at("data"))
    reasons = []
    for call, field in (
        (lambda: files.make_folder(ALICE, at(name)), "path"),
        (lambda: shares.rename(ALICE, at("data"), name), "name"),
        (lambda: world.services.storage.make(ALICE, name), "folder"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            call()
        (error,) = refused.value.errors
        assert error.field == field
        reasons.append(error.message.rstrip(".").lower())
    assert len(set(reasons)) == 1
    if name != "home":
        with pytest.raises(ValueError, match=reasons[0][:20]):
            Mount(folder=name)
    assert os.listdir(storage) == ["data"]


@pytest.mark.parametrize("name", UNMOUNTABLE)
def test_elsewhere_such_a_name_is_as_good_as_any(
    files: Files, shares: FolderShares, world: World, storage: Path, name: str
) -> None:
    home = storage.parent
    location = f"home/{quote(name, safe='')}"
    files.make_folder(ALICE, location)
    shares.rename(ALICE, location, "other")
    shares.rename(ALICE, "home/other", name)
    assert (home / name).is_dir()
    # A file between the storage folders, and a folder from a shell.
    (storage / "file").touch()
    assert shares.rename(ALICE, at("file"), name).kind == "file"
    (storage / name).unlink()
    (storage / name).mkdir()
    (folder,) = files.list(ALICE, "storage", {"hidden": "true"}).entries
    assert shares.rename(ALICE, folder.path, name).path == folder.path  # it stays
    assert shares.rename(ALICE, folder.path, "mountable").name == "mountable"


@pytest.mark.parametrize("name", INVALID)
def test_what_no_file_system_permits(files: Files, shares: FolderShares, name: str) -> None:
    files.make_folder(ALICE, at("data"))
    with pytest.raises(InvalidRequest):
        shares.rename(ALICE, at("data"), name)


def test_a_name_in_another_encoding_is_kept_and_can_be_renamed(
    files: Files, shares: FolderShares, storage: Path
) -> None:
    for raw in (b"caf\xe9", b"\xff\xfe", b"\xed\xa0\x80"):
        location = at(raw)
        with pytest.raises(InvalidRequest, match="UTF-8"):
            files.make_folder(ALICE, location)
        os.mkdir(os.fsencode(storage) + b"/" + raw)
        assert shares.uses(ALICE, location) is None
        order = {"kind": "copy", "items": [location], "to": "home"}
        assert files.operate(ALICE, order).state == "done"
        assert raw in os.listdir(os.fsencode(storage.parent))
        assert shares.rename(ALICE, location, "café").name == "café"
        os.rmdir(storage / "café")
    with pytest.raises(InvalidRequest):
        shares.rename(ALICE, f"home/{quote(b'caf' + bytes([0xE9]))}", "\ud800")
