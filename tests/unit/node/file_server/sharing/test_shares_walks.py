"""Access is taken back until a walk finds none, and a crash on the way leaves a mark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from portal.node.file_server.access import posix_acl
from portal.node.file_server.access.schemes import Posix
from portal.node.file_server.access.subjects import Subject
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.sharing import shares
from tests.support.other_account import BOB, files_of, private_home, readable_by_bob
from tests.unit.node.file_server.conftest import Client

FOLDER = "/v1/shares/storage/data"
WITH_BOB = f"{FOLDER}?kind=user&name={BOB.pw_name}"


@pytest.fixture
def home() -> Iterator[Path]:
    with private_home() as folder:
        for name in ("a", "b", "c"):
            (folder / "storage" / "data" / name).mkdir(parents=True)
            (folder / "storage" / "data" / name / "file").write_text(name)
        yield folder


@pytest.fixture
def folder(control: Client, home: Path) -> Path:
    body = {"kind": "user", "name": BOB.pw_name, "access": "write"}
    assert control("PUT", FOLDER, body).status == 200
    assert len(readable_by_bob(files_of(home))) == 3
    return home / "storage" / "data"


@pytest.fixture
def at_revoke(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[OpenFile], None]], None]:
    """Have something happen whenever a file's access has been ended."""

    def set_up(happens: Callable[[OpenFile], None]) -> None:
        revoke = Posix.revoke

        def after(self: Posix, found: OpenFile, subject: Subject) -> bool:
            changed = revoke(self, found, subject)
            happens(found)
            return changed

        monkeypatch.setattr(Posix, "revoke", after)

    return set_up


def test_what_is_renamed_past_the_walk_is_closed_too(
    control: Client, folder: Path, at_revoke: Callable[[Callable[[OpenFile], None]], None]
) -> None:
    renamed: list[tuple[bytes, ...]] = []

    def rename(found: OpenFile) -> None:
        """Another process moves what the walk has not come to into what it has done."""
        if len(found.names) == 1 and not renamed:
            renamed.append(found.names)
            done = os.fsdecode(found.names[0])
            for name in {"a", "b", "c"} - {done}:
                (folder / name / "file").rename(folder / f"from {name}")
                (folder / name).rename(folder / done / name)

    at_revoke(rename)
    assert control("DELETE", WITH_BOB).json["problem"] == ""
    assert renamed
    folder.chmod(0o755)
    (folder.parent.parent).chmod(0o711)
    (folder.parent).chmod(0o711)
    assert [p for p in folder.rglob("*") if posix_acl.read(str(p))] == []
    assert readable_by_bob(files_of(folder)) == set()


def test_a_folder_that_never_rests_is_a_problem_and_not_an_end(
    control: Client, folder: Path, at_revoke: Callable[[Callable[[OpenFile], None]], None]
) -> None:
    bobs = posix_acl.grant(posix_acl.of_mode(0o600), (posix_acl.USER, BOB.pw_uid), 4)
    at_revoke(lambda found: posix_acl.write(str(folder / "a" / "file"), bobs))
    found = control("DELETE", WITH_BOB)
    assert (found.status, found.json["code"]) == (409, "share")
    assert "moved in this folder all the time" in found.json["detail"]


def test_a_crash_leaves_the_mark_that_access_is_ending(
    control: Client, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(top: int, act: Callable[[OpenFile], bool], _: object) -> bool:
        act(OpenFile(top, (), os.fstat(top)))
        raise OSError(5, "killed")

    monkeypatch.setattr(shares, "_visit", crash)
    assert control("DELETE", WITH_BOB).status == 409
    monkeypatch.undo()
    assert readable_by_bob([folder]) == set()
    listed = control("GET", FOLDER).json
    assert listed["shares"] == []
    assert listed["ending"] == [{"kind": "user", "name": BOB.pw_name}]
    assert control("DELETE", WITH_BOB).status == 200
    assert [p for p in folder.rglob("*") if posix_acl.read(str(p))] == []
    assert control("GET", FOLDER).json["ending"] == []


def test_an_account_that_was_deleted_is_taken_back_by_its_number(
    control: Client, home: Path
) -> None:
    data = home / "storage" / "data"
    entry = (posix_acl.USER, 3_999_999_999)
    posix_acl.write(str(data), posix_acl.grant(posix_acl.of_mode(0o700), entry, 5))
    (share,) = control("GET", FOLDER).json["shares"]
    assert share["name"] == "3999999999"
    assert control("DELETE", f"{FOLDER}?kind=user&name=3999999999").status == 200
    assert posix_acl.read(str(data)) is None
    body = {"kind": "user", "name": "3999999999", "access": "read"}
    assert control("PUT", FOLDER, body).status == 200
    assert posix_acl.read(str(data)) is None
