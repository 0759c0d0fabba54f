"""What a copy keeps of its original, as `cp -a` does."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from portal.file_server.operations.kinds.attributes import keep

ACCESS, DEFAULT = "system.posix_acl_access", "system.posix_acl_default"


def acl(reader: int) -> bytes:
    """rw-r-----, and one more user who may read."""
    everybody = 0xFFFFFFFF
    entries = ((1, 6, everybody), (2, 4, reader), (4, 4, everybody), (16, 4, everybody))
    found = b"".join(struct.pack("<HHI", *entry) for entry in (*entries, (32, 0, everybody)))
    return struct.pack("<I", 2) + found


def kept(source: Path, target: Path) -> None:
    opened = [os.open(path, os.O_RDONLY) for path in (source, target)]
    keep(opened[0], opened[1], os.fstat(opened[0]))
    for each in opened:
        os.close(each)


def test_access_control_lists_are_kept(tmp_path: Path) -> None:
    for name in ("source", "target"):
        (tmp_path / name).mkdir()
    os.setxattr(tmp_path / "source", ACCESS, acl(12345))
    os.setxattr(tmp_path / "source", DEFAULT, acl(12346))
    kept(tmp_path / "source", tmp_path / "target")
    assert os.getxattr(tmp_path / "target", ACCESS) == acl(12345)
    assert os.getxattr(tmp_path / "target", DEFAULT) == acl(12346)


def test_rights_that_the_destination_gives_are_no_part_of_a_copy(tmp_path: Path) -> None:
    (tmp_path / "source").write_text("private")
    (tmp_path / "source").chmod(0o600)
    (tmp_path / "shared").mkdir()
    os.setxattr(tmp_path / "shared", DEFAULT, acl(12345))
    target = tmp_path / "shared" / "target"
    target.touch()
    assert ACCESS in os.listxattr(target)
    kept(tmp_path / "source", target)
    assert os.listxattr(target) == []
    assert target.stat().st_mode & 0o7777 == 0o600


def test_a_copy_that_cannot_have_the_same_owner_acts_for_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("source", "target"):
        (tmp_path / name).write_text("x")
    os.chown(tmp_path / "source", 12345, 12346)
    (tmp_path / "source").chmod(0o6755)

    def only_the_group(file: int, user: int, group: int) -> None:
        if user != -1:
            raise PermissionError
        chown(file, user, group)

    chown = os.fchown
    monkeypatch.setattr(os, "fchown", only_the_group)
    kept(tmp_path / "source", tmp_path / "target")
    found = (tmp_path / "target").stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (os.getuid(), 12346, 0o755)
