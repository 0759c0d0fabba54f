"""What /proc says of real processes."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.node.gpu.watchdog.processes import PATIENCE, Processes

THREADS = """
import ctypes, sys, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
print("runs", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_zombie_is_dying_and_a_running_process_is_not() -> None:
    processes = Processes()
    with subprocess.Popen(["sleep", "60"]) as child:
        assert not processes.is_dying(child.pid)
        mark = processes.mark(child.pid)
        assert mark.startswith(f"{child.pid}@")
        child.kill()
        _wait_for(lambda: processes.is_dying(child.pid))
        assert processes.mark(child.pid) == mark


def test_a_process_without_its_first_thread_is_not_dying() -> None:
    processes = Processes()
    with subprocess.Popen([sys.executable, "-c", THREADS], stdout=subprocess.PIPE) as child:
        assert child.stdout
        assert child.stdout.readline() == b"runs\n"
        state = Path(f"/proc/{child.pid}/stat")
        _wait_for(lambda: ") Z " in state.read_text())
        assert not processes.is_dying(child.pid)
        child.kill()


def test_mappings_that_cannot_be_read_soon_hold_nobody_up(tmp_path: Path) -> None:
    """Reading a pipe without a writer waits as for a process that keeps the lock."""
    maps = tmp_path / "7" / "maps"
    maps.parent.mkdir()
    os.mkfifo(maps)
    uvm = tmp_path / "nvidia-uvm"
    uvm.touch()
    device = uvm.stat()
    file = f"{os.major(device.st_dev):02x}:{os.minor(device.st_dev):02x} {device.st_ino}"
    processes = Processes(proc=tmp_path, uvm=uvm)
    began = time.monotonic()
    assert [processes.managed(7) for _ in range(20)] == [None] * 20
    assert time.monotonic() - began < 10 * PATIENCE  # one of them has waited
    maps.write_text("")  # what waited goes on
    maps.unlink()
    maps.write_text(f"0-3000 rw-s 0 {file} /dev/nvidia-uvm\n")
    _wait_for(lambda: processes.managed(7) == 0x3000)


def test_managed_memory_is_what_is_mapped_of_the_device(tmp_path: Path) -> None:
    """Also by another name for it, which a user can mount."""
    uvm, other = tmp_path / "nvidia-uvm", tmp_path / "other"
    for file in (uvm, other):
        file.write_bytes(bytes(4 * mmap.PAGESIZE))
    alias = tmp_path / "alias"
    os.link(uvm, alias)
    maps = []
    for file, pages in ((uvm, 3), (alias, 2), (other, 1)):
        with file.open("r+b") as stream:
            maps.append(mmap.mmap(stream.fileno(), pages * mmap.PAGESIZE))
    assert Processes(uvm=uvm).managed(os.getpid()) == 5 * mmap.PAGESIZE
    assert Processes(uvm=tmp_path / "none").managed(os.getpid()) == 0  # there is no such device
    assert Processes(uvm=other).managed(os.getpid()) == mmap.PAGESIZE  # whatever is called so
    for each in maps:
        each.close()
    assert Processes(uvm=uvm).managed(os.getpid()) == 0


def test_a_file_that_root_cannot_look_at_is_no_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of the device's name on a user's own FUSE mount: it hid all of its process's."""
    uvm = tmp_path / "nvidia-uvm"
    uvm.touch()
    device = uvm.stat()
    file = f"{os.major(device.st_dev):02x}:{os.minor(device.st_dev):02x} {device.st_ino}"
    folder = tmp_path / "7"
    folder.mkdir()
    lines = f"0-3000 rw-s 0 {file} /dev/nvidia-uvm\n4000-5000 rw-s 0 00:30 2 /mnt/nvidia-uvm\n"
    (folder / "maps").write_text(lines)
    stat = Path.stat

    def refused(path: Path, **options: bool) -> os.stat_result:
        if path.parent.name == "map_files":
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **options)

    monkeypatch.setattr(Path, "stat", refused)
    assert Processes(proc=tmp_path, uvm=uvm).managed(7) == 0x3000
