"""What a copy keeps of its original, and what its new folder gives it."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.node.file_server.access import inheritance
from portal.node.file_server.access.inheritance import inheritance_of
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.operations.kinds import attributes

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def acl(reader: int) -> bytes:
    """rw-r-----, and one more user who may read."""
    everybody = 0xFFFFFFFF
    entries = ((1, 6, everybody), (2, 4, reader), (4, 4, everybody), (16, 4, everybody))
    found = b"".join(struct.pack("<HHI", *entry) for entry in (*entries, (32, 0, everybody)))
    return struct.pack("<I", 2) + found


@pytest.fixture(autouse=True)
def umask(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.umask(0o022)
    monkeypatch.setattr(inheritance, "_UMASK", 0o022)
    yield
    os.umask(before)


def copied_file(source: Path, folder: Path) -> Path:
    with contextlib.ExitStack() as stack:
        opened = os.open(source, os.O_RDONLY)
        stack.callback(os.close, opened)
        place = os.open(folder, os.O_RDONLY)
        stack.callback(os.close, place)
        original, given = OpenFile(opened, (), os.fstat(opened)), inheritance_of(place)
        target = attributes.create_copy(place, b"copy", original, given)
        stack.callback(os.close, target)
        attributes.keep(original, target, given)
    return folder / "copy"


def copied_folder(source: Path, folder: Path) -> Path:
    (folder / "copy").mkdir(0o700)
    opened = [os.open(path, os.O_RDONLY) for path in (source, folder / "copy", folder)]
    original = OpenFile(opened[0], (), os.fstat(opened[0]))
    attributes.keep(original, opened[1], inheritance_of(opened[2]))
    for descriptor in opened:
        os.close(descriptor)
    return folder / "copy"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_copy_has_the_permissions_of_its_source_below_the_umask(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    for given, expected in ((0o640, 0o640), (0o600, 0o600), (0o777, 0o755), (0o400, 0o400)):
        (tmp_path / "source").chmod(given)
        copy = copied_file(tmp_path / "source", tmp_path)
        assert mode(copy) == expected
        copy.unlink()
    (tmp_path / "sources").mkdir()
    for given, expected in ((0o755, 0o755), (0o700, 0o700), (0o777, 0o755), (0o550, 0o550)):
        (tmp_path / "sources").chmod(given)
        copy = copied_folder(tmp_path / "sources", tmp_path)
        assert mode(copy) == expected
        copy.rmdir()


def test_no_copy_acts_for_its_owner_or_group(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    (tmp_path / "source").chmod(0o6755)
    assert mode(copied_file(tmp_path / "source", tmp_path)) == 0o755


def test_set_group_id_of_folders_is_inherited_not_copied(tmp_path: Path) -> None:
    for name in ("plain", "grouped", "source"):
        (tmp_path / name).mkdir()
    (tmp_path / "source").chmod(0o2755)
    assert mode(copied_folder(tmp_path / "source", tmp_path / "plain")) == 0o755
    (tmp_path / "source").chmod(0o755)
    (tmp_path / "grouped").chmod(0o2755)
    assert mode(copied_folder(tmp_path / "source", tmp_path / "grouped")) == 0o2755


def test_access_that_was_given_to_the_source_does_not_travel(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source/file").write_text("x")
    os.setxattr(tmp_path / "source", ACCESS, acl(12345))
    os.setxattr(tmp_path / "source", DEFAULT, acl(12345))
    os.setxattr(tmp_path / "source/file", ACCESS, acl(12345))
    os.setxattr(tmp_path / "source/file", "user.note", b"kept")
    assert os.listxattr(copied_folder(tmp_path / "source", tmp_path)) == []
    (tmp_path / "copy").rmdir()
    copy = copied_file(tmp_path / "source/file", tmp_path)
    assert os.listxattr(copy) == ["user.note"]
    assert os.getxattr(copy, "user.note") == b"kept"


@pytest.mark.parametrize("given", [0o600, 0o640, 0o400])
def test_a_folder_with_a_list_gives_that_to_private_files_too(tmp_path: Path, given: int) -> None:
    (tmp_path / "source").write_text("private")
    (tmp_path / "shared").mkdir()
    os.setxattr(tmp_path / "shared", DEFAULT, acl(12345))
    (tmp_path / "source").chmod(given)
    copy = copied_file(tmp_path / "source", tmp_path / "shared")
    assert os.getxattr(copy, ACCESS) == acl(12345)
    copy.unlink()
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources").chmod(given | 0o100)
    folder = copied_folder(tmp_path / "sources", tmp_path / "shared")
    assert mode(folder) == 0o640  # the list that new ones inherit gives no more than reading
    assert os.getxattr(folder, DEFAULT) == acl(12345)


@pytest.mark.parametrize("given", [0o600, 0o604, 0o640, 0o777])
def test_everybody_else_gets_no_more_than_of_the_original(tmp_path: Path, given: int) -> None:
    (tmp_path / "source").write_text("private")
    (tmp_path / "source").chmod(given)
    for name in ("listed", "grouped"):
        (tmp_path / name).mkdir()
    os.setxattr(tmp_path / "listed", DEFAULT, acl_for_all())
    os.chown(tmp_path / "grouped", -1, 4242)
    (tmp_path / "grouped").chmod(0o2777)
    for name in ("listed", "grouped"):
        copy = copied_file(tmp_path / "source", tmp_path / name)
        assert mode(copy) & 0o007 & ~given == 0
        assert mode(copy) & 0o660 >= 0o640


def acl_for_all() -> bytes:
    """rwxrwxrwx, without another user."""
    rows = ((1, 7), (4, 7), (32, 7))
    found = b"".join(struct.pack("<HHI", tag, bits, 0xFFFFFFFF) for tag, bits in rows)
    return struct.pack("<I", 2) + found


def test_the_mask_of_a_list_is_no_permission_of_the_group(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("x")
    writer = acl(12345).replace(struct.pack("<HH", 2, 4), struct.pack("<HH", 2, 6))
    os.setxattr(tmp_path / "source", ACCESS, writer.replace(b"\x10\0\4", b"\x10\0\6"))
    assert mode(tmp_path / "source") == 0o660
    assert mode(copied_file(tmp_path / "source", tmp_path)) == 0o640


def test_links_keep_their_times_only(tmp_path: Path) -> None:
    (tmp_path / "goal").write_text("x")
    (tmp_path / "link").symlink_to("goal")
    os.utime(tmp_path / "link", (1, 2), follow_symlinks=False)
    (tmp_path / "copy").symlink_to("goal")
    place = os.open(tmp_path, os.O_RDONLY)
    attributes.keep_link(place, b"copy", (tmp_path / "link").lstat())
    attributes.keep_link(place, b"goal", (tmp_path / "link").lstat())  # exchanged meanwhile
    os.close(place)
    assert (tmp_path / "copy").lstat().st_mtime == 2
    assert (tmp_path / "goal").stat().st_mtime > 2
