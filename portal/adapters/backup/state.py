"""The state directory: who uses it, and how a restored one takes its place.

What is restored is prepared in the folder `restore`, then COMMIT is written there, and only then
are files moved. Whoever finds a COMMIT moves what is left: after an interruption at any moment the
directory is either as before, or becomes as restored before anything reads it.
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
"""What the directory has beside the database."""
BACKUPS = "backups"
_LOCK = "in_use.lock"
_STAGING = "restore"
_COMMIT = "COMMIT"
_NEW = "new"


class InUse(Exception):
    """The portal runs on this state; the text says what."""


def use(state: StateSettings) -> int | None:
    """Keep the directory from being replaced as long as this process runs.

    Completes a restoration that was interrupted. Returns the lock's descriptor; None where another
    account owns the directory, which then must not get files of ours.
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
    """The same for as long as something lasts."""
    descriptor = use(state)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def alone(state: StateSettings) -> Iterator[None]:
    """Hold the directory; raises InUse while the portal runs on it."""
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
    """Releases before this lock existed are known by their sockets, and by the worker's lock."""
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
    """Whether there is nothing yet that a restoration would replace."""
    return not any((directory / name).exists() for name in (DATABASE, *ENTRIES))


def staging(directory: Path) -> Path:
    """An empty folder for what is to be restored; what an interrupted attempt left is removed."""
    shutil.rmtree(directory / _STAGING, ignore_errors=True)
    new = directory / _STAGING / _NEW
    new.mkdir(mode=0o700, parents=True)
    return new


def discard(directory: Path) -> None:
    """Remove what was prepared, unless it is committed already."""
    if not _is_committed(directory):
        shutil.rmtree(directory / _STAGING, ignore_errors=True)


def commit(directory: Path, aside: str) -> None:
    """From now on the prepared files are the state; `aside`: the folder for the earlier ones."""
    place = directory / _STAGING
    for path in (place, *place.rglob("*")):
        sync(path)
    draft = place / f"{_COMMIT}.new"
    draft.write_text(aside, encoding="utf-8")
    sync(draft)
    draft.replace(place / _COMMIT)
    sync(place)
    sync(directory)


def _is_committed(directory: Path) -> bool:
    return (directory / _STAGING / _COMMIT).exists()


def is_interrupted(state: StateSettings) -> bool:
    """Whether a restoration is committed, but not complete."""
    return _is_committed(Path(state.directory))


def complete(state: StateSettings) -> None:
    """Move what is committed to its place, and the earlier files aside; can be repeated."""
    directory = Path(state.directory)
    place = directory / _STAGING
    aside = directory / (place / _COMMIT).read_text(encoding="utf-8").strip()
    aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    copy = place / _NEW / DATABASE
    if copy.exists():
        file = sqlite_file(state.database_url)
        if file is None:
            load_database(copy, state.database_url)
            copy.unlink()
        else:
            # The log first: it must never lie beside a database that it does not belong to.
            for suffix in ("-wal", "-shm"):
                _move(file.with_name(f"{file.name}{suffix}"), aside)
            _replace(copy, file, aside)
    for name in ENTRIES:
        _replace(place / _NEW / name, directory / name, aside)
    sync(aside)
    sync(directory)
    (place / _COMMIT).unlink()
    shutil.rmtree(place, ignore_errors=True)
    with suppress(OSError):
        aside.rmdir()  # there was nothing before


def _replace(new: Path, old: Path, aside: Path) -> None:
    if not new.exists():
        return  # moved before an interruption
    _move(old, aside)
    new.rename(old)


def _move(old: Path, aside: Path) -> None:
    if old.exists():
        old.rename(aside / old.name)
