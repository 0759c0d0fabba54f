"""The state directory: its lock, and its replacement by a restored one.

Restored files are prepared in the folder `restore`, then COMMIT is written there, and only then are
files moved. A process that finds a COMMIT moves the remaining files: after an interruption at any
moment the directory is either unchanged, or is completely restored before any process reads it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from portal.adapters.backup.database import load_database, sync
from portal.config import StateSettings
from portal.store.engine import sqlite_file

DATABASE = "slipway.db"
ENTRIES = ("secret_key", "ca", "keys")
"""The entries of the directory other than the database."""
BACKUPS = "backups"
_LOCK = "in_use.lock"
_STAGING = "restore"
_COMMIT = "COMMIT"
_NEW = "new"


class InUse(Exception):
    """The state directory is in use; the text says by which process."""


def use(state: StateSettings) -> int | None:
    """Lock the directory against replacement as long as this process runs.

    Completes an interrupted restoration. Returns the lock's descriptor; None if another
    account owns the directory, in which this account must not create files.
    """
    directory = Path(state.directory)
    if not directory.exists() or directory.stat().st_uid != os.geteuid():
        return None
    descriptor = _open_lock(directory)
    if _is_committed(directory):
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        complete(state)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


@contextmanager
def in_use(state: StateSettings) -> Iterator[None]:
    """Lock the directory against replacement within a `with` block."""
    descriptor = use(state)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def alone(state: StateSettings) -> Iterator[None]:
    """Lock the directory exclusively; raises InUse while the portal runs on it."""
    directory = Path(state.directory)
    descriptor = _open_lock(directory)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse(f"the portal or another command uses {directory}") from None
        _refuse_earlier_releases(Path(state.run))
        yield
    finally:
        os.close(descriptor)


def _open_lock(directory: Path) -> int:
    return os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _refuse_earlier_releases(run: Path) -> None:
    """Detect releases without this lock by their sockets and the worker's lock; raises InUse."""
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(run / "portal.sock"))
        raise InUse(f"slipway-web answers at {run}/portal.sock")
    with suppress(FileNotFoundError, PermissionError):
        descriptor = os.open(run / "worker.lock", os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse("slipway-worker runs") from None
        finally:
            os.close(descriptor)


def is_new(directory: Path) -> bool:
    """Whether the directory has nothing that a restoration would replace."""
    return not any((directory / name).exists() for name in (DATABASE, *ENTRIES))


def staging(directory: Path) -> Path:
    """Create an empty folder for restored files; removes the rest of an interrupted attempt."""
    shutil.rmtree(directory / _STAGING, ignore_errors=True)
    new = directory / _STAGING / _NEW
    new.mkdir(mode=0o700, parents=True)
    return new


def discard(directory: Path) -> None:
    """Remove the prepared files, unless they are committed."""
    if not _is_committed(directory):
        shutil.rmtree(directory / _STAGING, ignore_errors=True)


def commit(directory: Path, aside: str) -> None:
    """Make the prepared files the state; `aside`: the name of the folder for the earlier files."""
    folder = directory / _STAGING
    for path in (folder, *folder.rglob("*")):
        sync(path)
    draft = folder / f"{_COMMIT}.new"
    draft.write_text(aside, encoding="utf-8")
    sync(draft)
    draft.replace(folder / _COMMIT)
    sync(folder)
    sync(directory)


def _is_committed(directory: Path) -> bool:
    return (directory / _STAGING / _COMMIT).exists()


def is_interrupted(state: StateSettings) -> bool:
    """Whether a restoration is committed, but not complete."""
    return _is_committed(Path(state.directory))


def complete(state: StateSettings) -> None:
    """Move the committed files into the state directory, and the earlier ones aside. Idempotent."""
    directory = Path(state.directory)
    folder = directory / _STAGING
    aside = directory / (folder / _COMMIT).read_text(encoding="utf-8").strip()
    aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = folder / _NEW / DATABASE
    if copy.exists():
        file = sqlite_file(state.database_url)
        if file is None:
            load_database(copy, state.database_url)
            copy.unlink()
        else:
            # The log first: it must never lie next to a database that it does not belong to.
            for suffix in ("-wal", "-shm"):
                _move(file.with_name(f"{file.name}{suffix}"), aside)
            _replace(copy, file, aside)
    for name in ENTRIES:
        _replace(folder / _NEW / name, directory / name, aside)
    sync(aside)
    sync(directory)
    (folder / _COMMIT).unlink()
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        aside.rmdir()  # there were no earlier files


def _replace(new: Path, old: Path, aside: Path) -> None:
    if not new.exists():
        return  # moved before an interruption
    _move(old, aside)
    new.rename(old)


def _move(old: Path, aside: Path) -> None:
    if old.exists():
        old.rename(aside / old.name)
