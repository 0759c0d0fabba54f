"""The server's process is killed at every line: nothing half-written appears, and uploads go on."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from portal.node.file_server.errors import Refused
from portal.node.file_server.roots import Root, Roots
from portal.node.file_server.uploads.records import (
    FINAL,
    PARTIAL,
    REFUSE,
    RENAME,
    REPLACE,
    Record,
    Store,
    new_id,
)
from portal.node.file_server.uploads.stored import PARTIAL_PATH
from portal.node.file_server.uploads.uploads import Chunk, Uploads
from tests.unit.node.file_server.uploads.conftest import parts

_NAMES = (
    "uploads stored concatenation parts records whole replacing in_place renames writing copy_data"
)
CHANGES = tuple(f"{name}.py" for name in _NAMES.split())
"""Modules that change something; between two lines of others there is no difference."""
READS = frozenset(
    "get all __iter__ _read _is_valid _texts _earlier _probe _resolve "
    "opened _open status _length part partial_ids is_partial is_final "
    "is_done _next _advance __init__ <genexpr> <listcomp>".split()
)
"""Functions in them that only read."""
BODY = b"0123456789" * 5000


@pytest.fixture
def home() -> Iterator[Path]:
    """In memory, where a sync takes no time."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def uploads(home: Path, hours: float = 48) -> Uploads:
    """As after a start of the server."""
    roots = Roots({"home": Root("home", str(home))})
    return Uploads(roots, Store([str(home / ".slipway/files/uploads")]), hours)


def wanted(how: str) -> Record:
    return Record(new_id(), "home/new/a.bin", len(BODY), 0.0, how)


def killed_after(lines: int, work: Callable[[], object]) -> bool:
    """Do work in another process that ends at its n-th line; returns whether it got so far."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] != 0
    left = lines

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if not frame.f_code.co_filename.endswith(CHANGES) or frame.f_code.co_name in READS:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os._exit(9)
        return trace

    sys.settrace(trace)
    work()
    os._exit(0)


def append(uploads: Uploads, id: str, offset: int, data: bytes, how: str = "") -> int:
    pieces = [data[at : at + 20_000] for at in range(0, len(data), 20_000)]
    with socket.socket() as line:
        return uploads.append(id, Chunk(offset, pieces, on_conflict=how), line)[1]


def state(uploads: Uploads, id: str) -> int:
    with socket.socket() as line:
        offset = uploads.state(id, line).offset
    assert offset is not None
    return offset


def remove(uploads: Uploads, id: str) -> None:
    with socket.socket() as line:
        uploads.remove(id, line)


@pytest.mark.parametrize("how", [REFUSE, REPLACE, RENAME])
def test_killed_while_a_chunk_is_written_or_the_file_put_in_place(home: Path, how: str) -> None:
    target = home / "new/a.bin"
    final = home / "new/a (2).bin" if how == RENAME else target
    lines = 0
    alive = True
    while alive:
        record = wanted(how)
        uploads(home).create(record)
        append(uploads(home), record.id, 0, BODY[:10_000])
        if how != REFUSE:
            target.write_bytes(b"old")
        alive = killed_after(
            lines, partial(append, uploads(home), record.id, 10_000, BODY[10_000:])
        )
        for path in (target, final):
            if path.exists():
                assert path.read_bytes() in (BODY, b"old"), lines
        now = uploads(home)
        offset = state(now, record.id)
        assert append(now, record.id, offset, BODY[offset:]) == len(BODY)
        assert final.read_bytes() == BODY, lines
        assert parts(home / "new") == [], lines
        final.unlink()
        target.unlink(missing_ok=True)
        lines += 1
    assert lines > 50


@pytest.mark.parametrize("returns", [True, False])
def test_killed_while_an_upload_is_written_into_a_file_with_two_names(
    home: Path, returns: bool
) -> None:
    target, second = home / "new/a.bin", home / "second"
    lines = 0
    alive = True
    while alive:
        record = wanted(REPLACE)
        uploads(home).create(record)
        append(uploads(home), record.id, 0, BODY[:10_000])
        target.write_bytes(b"old")
        os.link(target, second)
        alive = killed_after(
            lines, partial(append, uploads(home), record.id, 10_000, BODY[10_000:])
        )
        now = uploads(home)
        now.clean()  # as the next server does first
        assert second.read_bytes() == target.read_bytes()
        assert target.read_bytes() in (BODY, b"old"), lines
        if returns:
            offset = state(now, record.id)
            assert append(now, record.id, offset, BODY[offset:]) == len(BODY)
            assert second.read_bytes() == BODY, lines
        assert uploads(home, -1).clean() == 0
        assert parts(home / "new") == [], lines
        target.unlink()
        second.unlink()
        lines += 1
    assert lines > 50


def test_killed_while_an_upload_is_created(home: Path) -> None:
    lines = 0
    alive = True
    while alive:
        record = wanted(REFUSE)
        alive = killed_after(lines, partial(uploads(home).create, record))
        assert uploads(home, -1).clean() == 0
        assert parts(home) == [], lines
        assert list((home / ".slipway").rglob("*.json")) == []
        lines += 1
    assert lines > 20


def test_killed_while_an_upload_is_removed(home: Path) -> None:
    lines = 0
    alive = True
    while alive:
        record = wanted(REFUSE)
        uploads(home).create(record)
        alive = killed_after(lines, partial(remove, uploads(home), record.id))
        try:
            remove(uploads(home), record.id)
        except Refused as refused:
            assert refused.code == "no_upload"
        assert parts(home) == [], lines
        lines += 1


def join(uploads: Uploads, record: Record) -> Record:
    with socket.socket() as line:
        return uploads.join(record, line)


def partial_uploads(home: Path) -> list[str]:
    """The ids of two complete ones."""
    ids = []
    for text in (BODY[:30_000], BODY[30_000:]):
        record = Record(new_id(), PARTIAL_PATH, len(text), time.time(), concat=PARTIAL)
        uploads(home).create(record)
        append(uploads(home), record.id, 0, text)
        ids.append(record.id)
    return ids


def test_killed_while_partial_uploads_are_joined(home: Path) -> None:
    old, final = home / "new/a.bin", home / "new/a (2).bin"
    lines = 0
    alive = True
    while alive:
        concat = FINAL + " ".join(partial_uploads(home))
        old.parent.mkdir(exist_ok=True)
        old.write_bytes(b"old")

        def request(concat: str = concat) -> Record:
            return Record(new_id(), "home/new/a.bin", None, time.time(), RENAME, concat=concat)

        alive = killed_after(lines, partial(join, uploads(home), request()))
        assert not final.exists() or final.read_bytes() == BODY, lines
        assert join(uploads(home), request()).length == len(BODY)
        assert (old.read_bytes(), final.read_bytes()) == (b"old", BODY), lines
        assert len(list((home / "new").iterdir())) == 2, lines
        assert parts(home) == [], lines
        shutil.rmtree(home / ".slipway")
        final.unlink()
        lines += 1
    assert lines > 100


def test_killed_while_partial_uploads_are_joined_and_never_asked_again(home: Path) -> None:
    lines = 0
    alive = True
    while alive:
        concat = FINAL + " ".join(partial_uploads(home))
        record = Record(new_id(), "home/new/a.bin", None, time.time(), concat=concat)
        alive = killed_after(lines, partial(join, uploads(home), record))
        assert uploads(home, -2).clean() == 0
        assert parts(home) == [], lines
        (home / "new/a.bin").unlink(missing_ok=True)
        shutil.rmtree(home / ".slipway")
        lines += 7
