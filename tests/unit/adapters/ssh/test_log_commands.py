"""Reading logs with a real shell: regular files only, without blocking, bounded in size."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from portal.adapters.ssh.home_files import HomeFiles
from portal.errors import Conflict
from tests.support.transports import ShellTransport

SESSION = "a" * 32


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "alice" / ".slipway" / "logs"
    folder.mkdir(parents=True)
    return folder / f"{SESSION}.log"


@pytest.fixture
def files(log: Path) -> HomeFiles:
    return HomeFiles(ShellTransport(log.parents[2]), ".slipway", "storage")


def test_pieces_of_a_log(files: HomeFiles, log: Path) -> None:
    assert files.read_log("alice", SESSION, 0, 10) == b""
    assert files.log_size("alice", SESSION) == 0
    log.write_bytes(bytes(range(256)) * 1000)
    assert files.log_size("alice", SESSION) == 256_000
    assert files.read_log("alice", SESSION, 3, 5) == b"\x03\x04\x05\x06\x07"
    assert len(files.read_log("alice", SESSION, 1, 1 << 20)) == 255_999
    assert files.read_log("alice", SESSION, 256_000, 10) == b""
    assert files.read_log("alice", SESSION, 2**62, 10) == b""
    assert files.read_log("alice", SESSION, 0, 0) == b""
    assert files.log_tail("alice", SESSION, 4) == b"\xfc\xfd\xfe\xff"
    assert len(files.log_tail("alice", SESSION, 1 << 20)) == 256_000


@pytest.mark.parametrize("kind", ["fifo", "zero", "link", "folder", "dangling"])
def test_only_regular_files_are_read(files: HomeFiles, log: Path, kind: str) -> None:
    """E40: a FIFO blocked its reader."""
    match kind:
        case "fifo":
            os.mkfifo(log)
        case "folder":
            log.mkdir()
        case _:
            target = {"zero": "/dev/zero", "link": "/etc/hostname", "dangling": "/nowhere"}[kind]
            log.symlink_to(target)
    begun = time.monotonic()
    for read in (
        lambda: files.read_log("alice", SESSION, 0, 10),
        lambda: files.log_tail("alice", SESSION, 10),
        lambda: files.log_size("alice", SESSION),
    ):
        with pytest.raises(Conflict, match="not a regular file"):
            read()
    assert time.monotonic() - begun < 5
