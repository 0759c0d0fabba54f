"""The server's process is killed at every line while it writes a file in place.

The server that follows completes the file, or leaves the old one: never a half one without a way
back. Its own end at every line is no different.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from portal.node.file_server import in_place
from portal.node.file_server.location import parse
from portal.node.file_server.roots import Root, Roots
from portal.node.file_server.uploads import whole
from portal.node.file_server.uploads.records import REPLACE, Store
from portal.node.file_server.uploads.uploads import Uploads
from portal.node.file_server.uploads.whole import Body
from tests.support.other_account import BOB, done_by_bob, private_home
from tests.unit.node.file_server.uploads.conftest import parts

MODULES = ("uploads.py", "parts.py", "records.py", "whole.py", "recovery.py", "renames.py")
CHANGES = (*MODULES, "replacing.py", "in_place.py", "writing.py")
"""Modules that change something; between two lines of others there is no difference."""
OLD, NEW = b"old." * 800, b"new!" * 500


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "PIECE", 1000)
    monkeypatch.setattr(whole, "SMALL", 0)  # all parts are recorded, and so removed again


def uploads(folder: Path, hours: float = 48) -> tuple[Roots, Uploads]:
    """As after a start of the server."""
    home = Root("home", str(folder / "bob"))
    roots = Roots({"home": home, "area": Root("area", str(folder))})
    return roots, Uploads(roots, Store([f"{home.path}/.slipway/files/uploads"]), hours)


def save(folder: Path, name: str) -> None:
    roots, mine = uploads(folder)
    with roots.resolve(parse(f"area/{name}"), to_change=True) as dentry:
        pieces = [NEW[at : at + 1000] for at in range(0, len(NEW), 1000)]
        mine.save(dentry, Body(pieces, len(NEW)), on_conflict=REPLACE, modified=None)


def clean(folder: Path, hours: float = 48) -> None:
    uploads(folder, hours)[1].clean()


def until(lines: int, work: Callable[[], object]) -> None:
    """Do work in this process, which ends (9) at its n-th line."""
    left = lines

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(CHANGES):
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os._exit(9)
        return trace

    sys.settrace(trace)
    work()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of somebody else's, with the home of bob in it."""
    with private_home() as home:
        home.chmod(0o755)
        (home / "bob").mkdir()
        os.chown(home / "bob", BOB.pw_uid, BOB.pw_gid)
        yield home


def fixed(folder: Path) -> Path:
    """A file of bob's in a folder where he can create none: the part is in his home."""
    file = folder / "report"
    file.write_bytes(OLD)
    os.chown(file, BOB.pw_uid, BOB.pw_gid)
    return file


def linked(folder: Path) -> Path:
    """A file of bob's with two names, in a folder of his: the part is beside it."""
    place = folder / "bobs"
    place.mkdir(exist_ok=True)
    file = place / "report"
    file.write_bytes(OLD)
    (place / "second").unlink(missing_ok=True)
    os.link(file, place / "second")
    for path in (place, file):
        os.chown(path, BOB.pw_uid, BOB.pw_gid)
    return file


KINDS = (fixed, linked)


def state(file: Path) -> str:
    contents = file.read_bytes()
    return {OLD: "old", NEW: "new"}.get(contents, "half")


@pytest.mark.parametrize("kind", KINDS)
def test_killed_while_a_file_is_written(folder: Path, kind: Callable[[Path], Path]) -> None:
    lines, ended, seen = 0, 9, set()
    while ended == 9:
        file = kind(folder)
        before = file.stat()
        name = str(file.relative_to(folder))
        ended = done_by_bob(partial(until, lines, partial(save, folder, name)))
        seen.add(state(file))
        assert done_by_bob(partial(clean, folder, -1)) == 0
        assert state(file) in ("old", "new"), lines
        after = file.stat()
        assert (after.st_ino, after.st_nlink) == (before.st_ino, before.st_nlink)
        assert parts(folder) == [], lines
        assert list(folder.rglob("*.json")) == [], lines
        assert list(folder.rglob("*recovered*")) == [], lines
        lines += 1
    assert ended == 0
    assert seen == {"old", "half", "new"}
    assert lines > 100


@pytest.mark.parametrize("kind", KINDS)
def test_killed_while_it_is_completed(
    folder: Path, kind: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = in_place._copy

    def half(part: int, file: int) -> None:
        os.pwrite(file, os.pread(part, 1000, 0), 0)
        os._exit(9)

    lines, ended = 0, 9
    while ended == 9:
        file = kind(folder)
        name = str(file.relative_to(folder))
        monkeypatch.setattr(in_place, "_copy", half)
        assert done_by_bob(partial(save, folder, name)) == 9
        monkeypatch.setattr(in_place, "_copy", copy)
        assert state(file) == "half"
        ended = done_by_bob(partial(until, lines, partial(clean, folder)))
        assert done_by_bob(partial(clean, folder)) == 0
        assert state(file) == "new", lines
        assert parts(folder) == [], lines
        assert list(folder.rglob("*.json")) == [], lines
        lines += 1
    assert ended == 0
    assert lines > 30
