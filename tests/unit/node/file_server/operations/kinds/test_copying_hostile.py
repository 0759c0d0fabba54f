"""Files that somebody has prepared, or changes at the worst moment."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portal.node.file_server.copy_data import copy_data
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location
from portal.node.file_server.operations.kinds import copying
from tests.unit.node.file_server.operations.conftest import Operate, as_ordinary_user

STRANGE = [
    b"line\nbreak",
    b"quotes \"'`$(x)",
    b"-rf",
    b"--",
    b"x" * 255,
    b"caf\xe9\xff",
    b"<img src=x onerror=alert(1)>",
    "bidi\u202egpj.exe\u200f".encode(),
    b"%2e%2e%2f",
    b"back\\slash",
    b" ",
    b"...",
]


@pytest.mark.parametrize("name", STRANGE)
def test_names_of_any_bytes_are_copied_moved_and_deleted(
    operate: Operate, home: Path, elsewhere: Path, name: bytes
) -> None:
    here, there = os.fsencode(home), os.fsencode(elsewhere)
    os.mkdir(here + b"/" + name)
    with open(here + b"/" + name + b"/" + name, "wb") as file:
        file.write(name)
    found = operate("copy", [str(Location("home", (name,)))], "home/storage")
    assert (found["state"], found["files"], found["problems"]) == ("done", 1, [])
    found = operate("copy", [str(Location("home", (name,)))], "home", on_conflict="rename")
    assert (found["state"], found["problems"]) == ("done", [])
    copies = set(os.listdir(here)) - {b".slipway", b"storage", name}
    assert len(copies) == 1
    found = operate("move", [str(Location("home", (b"storage", name)))], "scratch")
    assert (found["state"], found["problems"]) == ("done", [])
    with open(b"/".join((there, name, name)), "rb") as file:
        assert file.read() == name
    found = operate("delete", [str(Location("scratch", (name,)))])
    assert (found["state"], found["files"], os.listdir(there)) == ("done", 1, [])


def test_links_loops_and_special_files(operate: Operate, home: Path, elsewhere: Path) -> None:
    work = home / "work"
    work.mkdir()
    (elsewhere / "secret").write_text("secret")
    for name, target in (("out", "/etc"), ("loop", "."), ("self", "self"), ("up", "../..")):
        (work / name).symlink_to(target)
    (work / "file out").symlink_to(elsewhere / "secret")
    os.mkfifo(work / "pipe")
    special = {"pipe": "This is a named pipe and was left out."}
    if os.getuid() == 0:
        os.mknod(work / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
        special["zero"] = "This is a device and was left out."
    found = operate("copy", ["home/work"], "home/storage")
    assert {each["name"]: each["detail"] for each in found["problems"]} == special
    copy = home / "storage" / "work"
    assert (copy / "out").readlink() == Path("/etc")
    assert sorted(os.listdir(copy)) == ["file out", "loop", "out", "self", "up"]
    operate("mode", ["home/work", "home/storage/work"], mode="777")
    found = operate("delete", ["home/work", "home/storage/work"])
    assert (found["state"], found["problems"]) == ("done", [])
    assert (elsewhere / "secret").stat().st_mode & 0o777 == 0o644
    assert (elsewhere / "secret").read_text() == "secret"


def test_a_link_is_deleted_moved_and_copied_itself(
    operate: Operate, home: Path, elsewhere: Path
) -> None:
    (elsewhere / "secret").write_text("secret")
    (home / "link").symlink_to(elsewhere / "secret")
    (home / "folder").symlink_to(elsewhere)
    operate("copy", ["home/link", "home/folder"], "home/storage")
    assert (home / "storage" / "folder").is_symlink()
    found = operate("mode", ["home/link"], mode="777")
    assert found["problems"][0]["detail"] == "Links have no permissions of their own."
    operate("delete", ["home/link", "home/folder"])
    assert (elsewhere / "secret").read_text() == "secret"
    found = operate("delete", ["home/storage/folder"])
    assert (found["state"], os.listdir(elsewhere)) == ("done", ["secret"])


@pytest.fixture
def swapped(home: Path, elsewhere: Path) -> Iterator[Callable[[], None]]:
    """Exchange home/work/swap, a folder, for a link to another one, as quickly as possible."""
    secret = elsewhere / "secret"
    secret.mkdir()
    for number in range(20):
        (secret / f"file {number}").write_text("secret")
        (secret / f"file {number}").chmod(0o600)
    over = threading.Event()

    def swap() -> None:
        work = home / "work"
        while not over.is_set():
            for old, new in (("swap", "aside"), ("link", "swap"), ("swap", "link")):
                try:
                    os.rename(work / old, work / new)
                except OSError:
                    continue
            try:
                os.rename(work / "aside", work / "swap")
            except OSError:
                continue

    threads: list[threading.Thread] = []

    def begin() -> None:
        if not threads:
            threads.append(threading.Thread(target=swap))
            threads[0].start()

    yield begin
    over.set()
    for thread in threads:
        thread.join()


def make(work: Path, name: str) -> None:
    """Make a folder at once, with files of the user's; nothing if there is one."""
    new = work / "new"
    new.mkdir(exist_ok=True)
    for number in range(20):
        (new / f"file {number}").write_text("mine")
    with contextlib.suppress(OSError):
        new.rename(work / name)


@pytest.mark.parametrize("kind", ["copy", "mode", "delete", "move"])
def test_a_link_that_takes_the_place_of_a_folder_is_never_followed(
    operate: Operate,
    home: Path,
    elsewhere: Path,
    swapped: Callable[[], None],
    kind: str,
) -> None:
    work, secret = home / "work", elsewhere / "secret"
    work.mkdir()
    (work / "link").symlink_to(secret)
    make(work, "swap")
    swapped()
    end, rounds = time.monotonic() + 1.0, 0
    while time.monotonic() < end or rounds < 3:
        rounds += 1
        with contextlib.suppress(Refused):  # it is not there at this moment
            if kind == "copy":
                operate("copy", ["home/work"], "home/storage", on_conflict="replace")
            elif kind == "mode":
                operate("mode", ["home/work"], mode="777")
            elif kind == "move":
                operate("move", ["home/work/swap"], "scratch", on_conflict="rename")
            else:
                operate("delete", ["home/work/swap"])
        make(work, "swap")
        if not os.path.lexists(work / "link"):
            with contextlib.suppress(FileExistsError):
                (work / "link").symlink_to(secret)
    assert len(os.listdir(secret)) == 20
    for each in secret.iterdir():
        assert (each.read_text(), each.stat().st_mode & 0o777) == ("secret", 0o600)
    copies = [*(home / "storage").rglob("file *"), *elsewhere.glob("swap*/file *")]
    read = [each for each in copies if not each.parent.is_symlink()]
    assert {each.read_text() for each in read} <= {"mine"}
    assert bool(read) == (kind in ("copy", "move"))


def test_a_file_that_changes_while_it_is_copied_is_said(
    operate: Operate, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("grows", "shrinks", "same"):
        (home / name).write_bytes(b"x" * 1000)
    changes = {"grows": 3000, "shrinks": 10}

    def changing(source: int, target: int, progress: Callable[[int], None]) -> int:
        path = Path(os.readlink(f"/proc/self/fd/{source}"))

        def then(count: int) -> None:
            progress(count)
            if path.name in changes:
                os.truncate(path, changes.pop(path.name))

        return copy_data(source, target, then)

    monkeypatch.setattr(copying, "copy_data", changing)
    found = operate("copy", ["home/grows", "home/shrinks", "home/same"], "home/storage")
    assert [(each["name"], each["detail"]) for each in found["problems"]] == [
        ("grows", "It changed while it was copied."),
        ("shrinks", "It changed while it was copied."),
    ]
    sizes = {name: (home / "storage" / name).stat().st_size for name in ("grows", "shrinks")}
    assert sizes == {"grows": 3000, "shrinks": 10}


def test_two_copies_to_the_same_name_are_both_complete(home: Path, operate: Operate) -> None:
    for name in ("one", "two"):
        (home / name).mkdir()
        (home / name / "file").write_bytes(name.encode() * 100_000)
    results: dict[str, dict[str, Any]] = {}

    def run(name: str, conflict: str) -> None:
        results[name] = operate("copy", [f"home/{name}/file"], "home/storage", on_conflict=conflict)

    for conflict, count in (("rename", 2), ("replace", 2)):
        threads = [threading.Thread(target=run, args=(name, conflict)) for name in ("one", "two")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [found["state"] for found in results.values()] == ["done", "done"]
        names = [name for name in os.listdir(home / "storage") if name != "data"]
        assert len(names) == count
        for name in names:
            contents = (home / "storage" / name).read_bytes()
            assert contents in (b"one" * 100_000, b"two" * 100_000)


def test_folders_without_permissions_are_named(open_folder: Path) -> None:
    for name in ("copied", "deleted", "opened"):
        (open_folder / name / "closed").mkdir(parents=True)
        (open_folder / name / "closed" / "file").write_text("x")
        (open_folder / name / "unreadable").write_text("x")
    for path in open_folder.rglob("*"):
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
    for name in ("copied", "deleted", "opened"):
        (open_folder / name / "closed").chmod(0)
        (open_folder / name / "unreadable").chmod(0)
    (open_folder / "to").mkdir(mode=0o777)
    (open_folder / "to").chmod(0o777)
    (open_folder / "shut").mkdir(mode=0o000)
    bodies: list[dict[str, Any]] = [
        {"kind": "copy", "items": ["home/copied"], "to": "home/to"},
        {"kind": "delete", "items": ["home/deleted"]},
        {"kind": "mode", "items": ["home/opened"], "mode": "700"},
    ]
    copied, deleted, opened = as_ordinary_user(open_folder, bodies)
    refused = "You have no permission to do this."
    paths = {each["path"]: each["detail"] for each in copied["problems"]}
    assert paths == {"home/copied/closed": refused, "home/copied/unreadable": refused}
    assert os.listdir(open_folder / "to" / "copied") == []
    assert [each["path"] for each in deleted["problems"]] == ["home/deleted/closed"]
    assert (opened["state"], opened["problems"], opened["files"]) == ("done", [], 2)
    assert (open_folder / "opened" / "closed" / "file").stat().st_mode & 0o777 == 0o600
    (open_folder / "shut").chmod(0o700)
    for name in ("copied", "deleted"):
        (open_folder / name / "closed").chmod(0o700)


def test_what_remains_of_a_read_only_folder_is_removed(open_folder: Path) -> None:
    """A copy that is replaced or cancelled must not stay under its hidden name."""
    for name in ("one/work", "two/work"):
        (open_folder / name / "deep").mkdir(parents=True)
        (open_folder / name / "deep" / "file").write_text(name)
    for path in (*open_folder.rglob("*"), open_folder):
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
    for name in ("one/work", "two/work"):
        (open_folder / name / "deep").chmod(0o555)
        (open_folder / name).chmod(0o555)
    body = {"kind": "copy", "items": ["home/one/work"], "to": "home/two", "on_conflict": "replace"}
    found = as_ordinary_user(open_folder, [body])[0]
    assert (found["state"], found["problems"]) == ("done", [])
    assert os.listdir(open_folder / "two") == ["work"]
    assert (open_folder / "two" / "work" / "deep" / "file").read_text() == "one/work"
    for name in ("one/work", "two/work"):
        (open_folder / name).chmod(0o755)
        (open_folder / name / "deep").chmod(0o755)


@pytest.fixture
def small(elsewhere: Path) -> Iterator[Path]:
    """A file system of one MiB, or a folder where that cannot be mounted."""
    folder = elsewhere / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
        check=False,
        capture_output=True,
    )
    yield folder
    if mounted.returncode == 0:
        subprocess.run(["umount", folder], check=True)


def test_a_full_file_system_ends_a_copy_and_leaves_nothing(
    operate: Operate, home: Path, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "work").mkdir()
    for number in range(20):
        (home / "work" / f"{number}").write_bytes(b"x" * 100_000)
    (home / "after").write_text("x")
    if not small.is_mount():

        def full(*_: Any) -> int:
            raise OSError(errno.ENOSPC, "full")

        monkeypatch.setattr(os, "copy_file_range", full)
    found = operate("copy", ["home/work", "home/after"], "scratch/small")
    assert found["state"] == "failed"
    assert found["detail"].startswith("The file system is full. ")
    assert found["detail"].endswith(" Items that were not complete are not there.")
    assert os.listdir(small) == []


def test_many_small_files_and_a_sparse_one_of_20_gb(
    operate: Operate, home: Path, elsewhere: Path
) -> None:
    (elsewhere / "many").mkdir()
    (elsewhere / "copies").mkdir()
    for number in range(10_000):
        (elsewhere / "many" / f"{number:05}.txt").write_bytes(b"x" * 10)
    with open(home / "big", "wb") as file:
        file.write(b"begin")
        file.seek(20 * 10**9 - 3)
        file.write(b"end")
    found = operate("copy", ["scratch/many"], "scratch/copies")
    assert (found["state"], found["files"], found["bytes"]) == ("done", 10_000, 100_000)
    found = operate("delete", ["scratch/copies/many"])
    assert (found["state"], found["files"]) == ("done", 10_000)
    start = time.monotonic()
    found = operate("copy", ["home/big"], "home/storage")
    assert time.monotonic() - start < 5
    assert (found["state"], found["bytes"]) == ("done", 20 * 10**9)
    copy = (home / "storage" / "big").stat()
    assert (copy.st_size, copy.st_blocks * 512 < 1_000_000) == (20 * 10**9, True)
    with open(home / "storage" / "big", "rb") as file:
        file.seek(-3, os.SEEK_END)
        assert file.read() == b"end"


def test_a_problem_deeper_than_paths_may_be_long_names_a_folder_above(
    operate: Operate, home: Path
) -> None:
    current = os.open(home, os.O_RDONLY)
    for _ in range(100):
        os.mkdir(b"\xff" * 100, dir_fd=current)
        deeper = os.open(b"\xff" * 100, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = deeper
    os.mkfifo(b"pipe", dir_fd=current)
    os.close(current)
    found = operate("copy", ["home/" + "%FF" * 100], "home/storage")
    assert found["problem_count"] == 1
    assert found["problems"][0]["name"] == "pipe"
    assert 11_000 < len(found["problems"][0]["path"]) < 12_001
    assert operate("delete", ["home/" + "%FF" * 100])["state"] == "done"


def test_a_tree_deeper_than_paths_may_be_long(operate: Operate, home: Path) -> None:
    current = os.open(home, os.O_RDONLY)
    for _ in range(300):
        os.mkdir(b"d" * 100, dir_fd=current)
        deeper = os.open(b"d" * 100, os.O_RDONLY, dir_fd=current)
        os.close(current)
        current = deeper
    os.close(os.open(b"bottom", os.O_CREAT | os.O_WRONLY, dir_fd=current))
    os.close(current)
    before = len(os.listdir("/proc/self/fd"))
    item = "home/" + "d" * 100
    found = operate("copy", [item], "home/storage")
    assert (found["state"], found["files"], found["problems"]) == ("done", 1, [])
    found = operate("delete", [item, "home/storage/" + "d" * 100])
    assert (found["state"], found["files"], found["problems"]) == ("done", 2, [])
    deadline = time.monotonic() + 10
    # Threads of earlier tests may hold a file for a moment.
    while len(os.listdir("/proc/self/fd")) > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(os.listdir("/proc/self/fd")) <= before
