"""Another user who may write in a folder exchanges the unfinished part, before every system call.

The file server runs in this process, so an audit hook plays the other user, at each moment once.
Nothing outside of the folder may change, and no folder that was in it may be deleted with what it
contains.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server import at, renames
from portal.node.file_server.location import PART_PREFIX
from tests.unit.node.file_server.conftest import Client
from tests.unit.node.file_server.uploads.conftest import Tus

Exchange = Callable[[Path, Path], None]
"""The part, and the canaries."""
EVENTS = ("open", "os.", "shutil.")
MOST = 400
"""System calls of one request; none has so many."""


class OtherUser:
    """Exchanges a part before the n-th system call since there is one."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._busy = threading.local()
        self._folder: Path | None = None

    def watch(self, folder: Path, canaries: Path, exchange: Exchange, moment: int) -> None:
        """Exchange the part in a folder at this moment."""
        with self._lock:
            self._folder, self._canaries = folder, canaries
            self._exchange, self._left = exchange, moment
            self.happened = False

    def rest(self) -> None:
        """Do nothing any more."""
        with self._lock:
            self._folder = None

    def before_call(self, event: str, _arguments: Any = ()) -> None:
        """Every system call with a path comes here."""
        if self._folder is None or not event.startswith(EVENTS):
            return
        if getattr(self._busy, "now", False):
            return
        self._busy.now = True
        try:
            with self._lock:
                self._look()
        finally:
            self._busy.now = False

    def _look(self) -> None:
        if self._folder is None or self.happened:
            return
        prefix = PART_PREFIX.decode()
        parts = [name for name in os.listdir(self._folder) if name.startswith(prefix)]
        if not parts:
            return
        self._left -= 1
        if self._left < 0:
            self.happened = True
            self._exchange(self._folder / parts[0], self._canaries)


bob = OtherUser()
sys.addaudithook(bob.before_call)


@pytest.fixture(autouse=True)
def openat2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Python raises no event for system calls that it does not know."""
    opened = at._openat2

    def noticed(folder: int, name: bytes, flags: int, mode: int) -> int:
        bob.before_call("open")
        return opened(folder, name, flags, mode)

    def noticed_rename(*arguments: Any) -> None:
        bob.before_call("os.rename")
        renamed(*arguments)

    def noticed_status(folder: int, name: bytes) -> os.stat_result:
        bob.before_call("os.stat")
        return looked(folder, name)

    looked, renamed = at.status, renames._renameat2
    monkeypatch.setattr(at, "status", noticed_status)
    monkeypatch.setattr(at, "_openat2", noticed)
    monkeypatch.setattr(renames, "_renameat2", noticed_rename)
    yield
    bob.rest()


# What is put in the part's place


def a_link_to_a_folder(part: Path, canaries: Path) -> None:
    part.rename(part.with_name("stolen"))
    part.symlink_to(canaries)


def a_link_to_a_file(part: Path, canaries: Path) -> None:
    part.rename(part.with_name("stolen"))
    part.symlink_to(canaries / "secret")


def another_file(part: Path, _canaries: Path) -> None:
    part.rename(part.with_name("stolen"))
    part.with_name("other").rename(part)


def another_folder(part: Path, _canaries: Path) -> None:
    """At once, as renameat2(RENAME_EXCHANGE) does."""
    libc = ctypes.CDLL(None, use_errno=True)
    other = os.fsencode(part.with_name("precious"))
    assert libc.renameat2(-100, other, -100, os.fsencode(part), 2) == 0, ctypes.get_errno()


EXCHANGES = (a_link_to_a_folder, a_link_to_a_file, another_file, another_folder)

# The doors by which the user writes


def put(data: Client, _control: Client) -> None:
    data("PUT", "/data/files/storage/data/report.txt", b"mine")


def put_large(data: Client, _control: Client) -> None:
    data("PUT", "/data/files/storage/data/report.txt", secrets.token_bytes(9 << 20))


def put_new(data: Client, _control: Client) -> None:
    data("PUT", "/data/files/storage/data/new.txt", b"mine", {"If-None-Match": "*"})


def put_timed(data: Client, _control: Client) -> None:
    data("PUT", "/data/dav/storage/data/report.txt", b"mine", {"X-OC-Mtime": "1000000"})


def upload(data: Client, _control: Client) -> None:
    tus = Tus(data)
    url = tus.begin("storage/data/report.txt", 6, on_conflict="replace", modified="1000000")
    tus.patch(url, 0, b"mine")
    tus.patch(url, 4, b"mi")


def give_up_upload(data: Client, _control: Client) -> None:
    tus = Tus(data)
    tus.delete(tus.begin("storage/data/report.txt", 6, on_conflict="replace"))


def dav_copy(data: Client, _control: Client) -> None:
    data("COPY", "/data/dav/home/tree", headers={"Destination": "/data/dav/storage/data/new"})


def dav_move(data: Client, _control: Client) -> None:
    data(
        "COPY", "/data/dav/home/file", headers={"Destination": "/data/dav/storage/data/report.txt"}
    )


def operation(control: Client, **order: Any) -> None:
    started = control("POST", "/v1/operations", order)
    assert started.status == 202, started.body
    while control("GET", f"/v1/operations/{started.json['id']}").json["ended"] is None:
        pass


def copy(_data: Client, control: Client) -> None:
    items = ["home/tree", "home/file", "home/link"]
    operation(control, kind="copy", items=items, to="storage/data", on_conflict="rename")


def copy_over(_data: Client, control: Client) -> None:
    operation(control, kind="copy", items=["home/old"], to="storage/data", on_conflict="replace")


DOORS = (
    put,
    put_large,
    put_new,
    put_timed,
    upload,
    give_up_upload,
    dav_copy,
    dav_move,
    copy,
    copy_over,
)


def snapshot(folder: Path) -> dict[str, Any]:
    """All that could be changed of what lies in a folder, and of the folder itself."""
    seen: dict[str, Any] = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        status = path.lstat()
        attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
        contents = path.read_bytes() if path.is_file() else b""
        times = status.st_mtime_ns, status.st_ctime_ns
        owner = status.st_uid, status.st_gid, status.st_mode
        seen[str(path.relative_to(folder))] = (*owner, times, attributes, contents)
    return seen


@pytest.fixture
def canaries(home: Path, tmp_path: Path) -> Path:
    """What must stay as it is; and what the user copies."""
    for name in ("tree/deep", "old/deep"):
        (home / name).mkdir(parents=True)
        (home / name / "file").write_text("x")
        (home / name).chmod(0o777)
    (home / "file").write_text("x")
    (home / "file").chmod(0o4777)
    (home / "link").symlink_to("file")
    folder = tmp_path / "canaries"
    folder.mkdir(0o700)
    (folder / "secret").write_text("secret")
    (folder / "secret").chmod(0o600)
    return folder


def fill(folder: Path) -> None:
    """A folder in which the other user may write, with things of the user's and of his."""
    for name in ("precious", "precious/deep", "old", "old/deep"):
        (folder / name).mkdir()
    for name in ("precious/deep/kept", "old/deep/file", "other"):
        (folder / name).write_text(name)
    (folder / "precious").chmod(0o700)
    (folder / "report.txt").write_text("bob's")
    os.chown(folder / "report.txt", 4242, 4242)
    (folder / "report.txt").chmod(0o6777)
    os.setxattr(folder / "report.txt", "user.note", b"bob's")
    os.utime(folder / "report.txt", (1, 1))


def clear(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.mark.parametrize("exchange", EXCHANGES)
@pytest.mark.parametrize("door", DOORS)
def test_nothing_else_is_changed_or_deleted(
    door: Callable[[Client, Client], None],
    exchange: Exchange,
    data: Client,
    control: Client,
    home: Path,
    canaries: Path,
) -> None:
    folder, before = home / "storage/data", snapshot(canaries)
    for moment in range(MOST):
        fill(folder)
        inode = (folder / "precious/deep/kept").stat().st_ino
        bob.watch(folder, canaries, exchange, moment)
        door(data, control)
        bob.rest()
        assert snapshot(canaries) == before, moment
        kept = [path for path in folder.rglob("kept") if path.stat().st_ino == inode]
        assert len(kept) == 1, moment
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink() and path.stat().st_uid == os.getuid():
                assert not path.stat().st_mode & 0o7022, (moment, path)
        clear(folder)
        if not bob.happened:
            assert moment
            return
    pytest.fail("a request without end")
