"""What a folder gives to what arrives in it, by NFSv4 lists; those of POSIX are in the matrix.

No such file system is at hand: attributes are kept in memory, in the notation of nfs4_getfacl.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from portal.node.file_server.access.inheritance import inheritance_of
from portal.node.file_server.access.nfs4_acl import ATTRIBUTE
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.operations.kinds import attributes as copies
from tests.support.acls import Attributes, read_nfs4, show_nfs4

OWN = "A::OWNER@:rwaxtTnNcCy A:g:GROUP@:rxtncy A::EVERYONE@:rxtncy"
FOLDER = f"""
A:fd:bob@example.org:rwaDxtTnNcy
A:fdg:team@example.org:rxtncy
A:d:folders@example.org:rxtcy
A:fi:files@example.org:rtcy
D:fdn:mallory@example.org:rwax
A::carol@example.org:rxtcy
A:fd:OWNER@:rwaDxtTnNcCoy
{OWN}
"""
FILE_GETS = (
    "A::bob@example.org:rwatTnNcy A:g:team@example.org:rtncy A::files@example.org:rtcy "
    f"D::mallory@example.org:rwa {OWN}"
)
PROGRAM_GETS = (
    "A::bob@example.org:rwaxtTnNcy A:g:team@example.org:rxtncy A::files@example.org:rtcy "
    f"D::mallory@example.org:rwax {OWN}"
)
FOLDER_GETS = (
    "A:fd:bob@example.org:rwaDxtTnNcy A:fdg:team@example.org:rxtncy A:d:folders@example.org:rxtcy "
    f"A:fi:files@example.org:rtcy D::mallory@example.org:rwax {OWN}"
)


@pytest.fixture
def lists(monkeypatch: pytest.MonkeyPatch) -> Attributes:
    kept = Attributes()
    monkeypatch.setattr(os, "getxattr", kept.get)
    monkeypatch.setattr(os, "setxattr", kept.set)
    monkeypatch.setattr(os, "listxattr", lambda _path: [ATTRIBUTE])
    return kept


@pytest.fixture
def folder(tmp_path: Path, lists: Attributes) -> Path:
    """A folder with inheritable entries."""
    path = tmp_path / "folder"
    path.mkdir()
    lists.set(str(path), ATTRIBUTE, read_nfs4(FOLDER))
    return path


@pytest.fixture
def opened() -> Iterator[Callable[[Path], int]]:
    descriptors: list[int] = []

    def open_path(path: Path) -> int:
        descriptors.append(os.open(path, os.O_RDONLY))
        return descriptors[-1]

    yield open_path
    for descriptor in descriptors:
        os.close(descriptor)


def test_the_notation_is_read_and_written() -> None:
    assert show_nfs4(read_nfs4(FOLDER)) == " ".join(FOLDER.split())


@pytest.mark.parametrize(
    ("mode", "expected"), [(0o600, FILE_GETS), (0o400, FILE_GETS), (0o700, PROGRAM_GETS)]
)
def test_a_copied_file(
    lists: Attributes,
    folder: Path,
    tmp_path: Path,
    opened: Callable[[Path], int],
    mode: int,
    expected: str,
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "file").chmod(mode)
    source = opened(tmp_path / "file")
    original, given = OpenFile(source, (), os.fstat(source)), inheritance_of(opened(folder))
    target = copies.create_copy(opened(folder), b"copy", original, given)
    copies.keep(original, target, given)
    os.close(target)
    assert show_nfs4(lists.get(str(folder / "copy"), ATTRIBUTE)) == expected
    assert (folder / "copy").stat().st_mode & 0o770 >= 0o640


def test_a_moved_tree_and_back(
    lists: Attributes, folder: Path, tmp_path: Path, opened: Callable[[Path], int]
) -> None:
    (tmp_path / "tree").mkdir(0o700)
    (tmp_path / "tree/file").write_text("x")
    (tmp_path / "tree/file").chmod(0o600)
    given = inheritance_of(opened(folder))
    assert given.is_common
    (tmp_path / "tree").rename(folder / "tree")
    for path in (folder / "tree", folder / "tree/file"):
        given.give(OpenFile(opened(path), (), path.stat()))
    assert show_nfs4(lists.get(str(folder / "tree"), ATTRIBUTE)) == FOLDER_GETS
    assert show_nfs4(lists.get(str(folder / "tree/file"), ATTRIBUTE)) == FILE_GETS
    private = inheritance_of(opened(tmp_path))
    assert not private.is_common
    for path in (folder / "tree", folder / "tree/file"):
        private.give(OpenFile(opened(path), (), path.stat()))
        assert show_nfs4(lists.get(str(path), ATTRIBUTE)) == OWN
