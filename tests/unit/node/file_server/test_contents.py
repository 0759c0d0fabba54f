"""Contents of files: ranges, and what a file has that takes the place of another one."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from portal.node.file_server import replacing
from tests.unit.node.file_server.conftest import Client
from tests.unit.node.file_server.uploads.conftest import Tus, metadata

BOB = 4242
HUGE = "9" * 20


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.parametrize(
    ("range_", "status", "contents"),
    [
        ("bytes=2-3", 206, b"23"),
        ("bytes=8-", 206, b"89"),
        ("bytes=-2", 206, b"89"),
        (f"bytes=8-{HUGE}", 206, b"89"),
        (f"bytes=8-{'9' * 5000}", 206, b"89"),
        (f"bytes=-{'9' * 5000}", 206, b"0123456789"),
        (f"bytes={'0' * 5000}8-", 206, b"89"),
        (f"bytes={HUGE}-", 416, None),
        (f"bytes={'9' * 5000}-", 416, None),
        (f"bytes={HUGE}-{HUGE}", 416, None),
        ("bytes=10-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=5-2", 416, None),
        ("bytes=-", 200, b"0123456789"),
        ("bytes=\xb2-", 200, b"0123456789"),
        ("lines=1-2", 200, b"0123456789"),
    ],
)
def test_ranges(data: Client, home: Path, range_: str, status: int, contents: bytes | None) -> None:
    (home / "file").write_text("0123456789")
    answer = data("GET", "/data/files/home/file", headers={"Range": range_})
    assert answer.status == status
    if contents is not None:
        assert answer.body == contents


def test_an_odd_length_is_no_error_of_ours(data: Client, home: Path) -> None:
    (home / "file").write_text("x")
    for length in ("\xb2", "1" * 5000):
        data.connection.putrequest("GET", "/data/files/home/file")
        data.connection.putheader("Content-Length", length)
        data.connection.endheaders()
        assert data.connection.getresponse().read() == b"x"
        data.connection.close()


# The doors by which a file is replaced


def put(data: Client, path: str) -> None:
    assert data("PUT", f"/data/files/{path}", b"mine").status == 200


def dav_put(data: Client, path: str) -> None:
    assert data("PUT", f"/data/dav/{path}", b"mine").status == 200


def tus_whole(data: Client, path: str) -> None:
    tus = Tus(data)
    assert tus.patch(tus.begin(path, 4, on_conflict="replace"), 0, b"mine").status == 204


def tus_at_once(data: Client, path: str) -> None:
    values = metadata(path=path, on_conflict="replace")
    assert Tus(data).post(b"mine", Upload_Length="4", Upload_Metadata=values).status == 201


DOORS = (put, dav_put, tus_whole, tus_at_once)
Door = Callable[[Client, str], None]


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest) -> Door:
    chosen: Door = request.param
    return chosen


def acl(reader: int, mask: int = 6) -> bytes:
    """rw-, one more user with as much, r-- for the group, and nothing for others."""
    rows = ((1, 6, -1), (2, mask, reader), (4, 4, -1), (16, mask, -1), (32, 0, -1))
    return struct.pack("<I", 2) + b"".join(
        struct.pack("<HHI", tag, bits, number & 0xFFFFFFFF) for tag, bits, number in rows
    )


ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def test_a_file_of_somebody_elses_stays_theirs_with_all_that_it_has(
    data: Client, home: Path, door: Door
) -> None:
    file = home / "storage/data/report"
    for mode in (0o755, 0o666, 0o1640):
        file.write_text("bob's, and longer")
        os.setxattr(file, "user.note", b"bob's")
        os.setxattr(file, ACCESS, acl(BOB))
        os.chown(file, BOB, BOB)
        file.chmod(mode)
        before = file.stat(), {name: os.getxattr(file, name) for name in os.listxattr(file)}
        door(data, "storage/data/report")
        assert file.read_text() == "mine"
        after = file.stat(), {name: os.getxattr(file, name) for name in os.listxattr(file)}
        assert after[1] == before[1]
        for which in ("st_ino", "st_mode", "st_uid", "st_gid", "st_nlink"):
            assert getattr(after[0], which) == getattr(before[0], which)
        assert list(file.parent.iterdir()) == [file]
        file.unlink()


def test_the_users_own_file_keeps_what_it_has(data: Client, home: Path, door: Door) -> None:
    file = home / "storage/data/report"
    for mode, expected in ((0o600, 0o600), (0o6750, 0o750), (0o664, 0o664), (0o755, 0o755)):
        file.write_text("old")
        os.setxattr(file, "user.note", b"mine")
        os.chown(file, -1, BOB)
        file.chmod(mode)
        door(data, "storage/data/report")
        assert (file.stat().st_mode & 0o7777, file.stat().st_gid) == (expected, BOB)
        assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == {
            "user.note": b"mine"
        }
        file.unlink()
    file.write_text("old")
    os.setxattr(file, ACCESS, acl(BOB))
    door(data, "storage/data/report")
    assert os.getxattr(file, ACCESS) == acl(BOB)


def test_a_private_file_stays_private_in_a_shared_folder(
    data: Client, home: Path, door: Door
) -> None:
    file = home / "storage/data/report"
    file.write_text("private")
    file.chmod(0o600)
    os.setxattr(file.parent, DEFAULT, acl(BOB))
    door(data, "storage/data/report")
    assert (os.listxattr(file), file.stat().st_mode & 0o777) == ([], 0o600)


def test_nobody_reads_more_of_a_part_than_of_the_file_that_it_replaces(
    data: Client, home: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "storage/data"
    (folder / "report").write_text("private")
    (folder / "report").chmod(0o600)
    os.setxattr(folder, DEFAULT, acl(BOB))
    modes: list[int] = []
    created = replacing.create_part

    def looked_at(*arguments: object, replace: bool) -> int:
        file = created(*arguments, replace=replace)  # type: ignore[arg-type]
        modes.append(os.fstat(file).st_mode & 0o777)
        return file

    for module in ("uploads.whole", "uploads.parts"):
        monkeypatch.setattr(f"portal.node.file_server.{module}.create_part", looked_at)
    door(data, "storage/data/report")
    assert modes == [0o600]


def test_a_file_whose_group_cannot_be_given_is_written_in_place(
    data: Client, home: Path, door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = home / "storage/data/report"
    file.write_text("old")
    os.chown(file, -1, BOB)
    file.chmod(0o660)
    inode = file.stat().st_ino

    def refuse(*_arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    door(data, "storage/data/report")
    status = file.stat()
    assert (status.st_ino, status.st_mode & 0o777, status.st_gid) == (inode, 0o660, BOB)
    assert file.read_text() == "mine"
