"""`slipway backup`: one file with everything that a portal on another host needs."""

from __future__ import annotations

import argparse
import fcntl
import logging
import os
import shutil
import socket
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import SQLAlchemyError

from portal.adapters.backup import archive
from portal.adapters.backup.database import CopyFailed, copy_database
from portal.adapters.backup.gpg import GpgFailed
from portal.adapters.backup.manifest import FORMAT, BadBackup, Manifest, describe
from portal.adapters.backup.state import BACKUPS, DATABASE, ENTRIES
from portal.cli.state.account import fail, wrong_account
from portal.cli.state.passphrase import NoPassphrase, read_passphrase
from portal.config import Settings
from portal.config.settings import settings_file
from portal.version import release


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "backup", help="write database, keys and settings to a file; the portal may be running"
    )
    parser.add_argument("file", type=Path, help="the backup; replaced if it exists")
    parser.add_argument("--encrypt", action="store_true", help="with a passphrase")
    parser.add_argument("--passphrase-file", help="file whose first line is the passphrase")
    parser.set_defaults(action=_backup)


def _backup(settings: Settings, options: argparse.Namespace) -> int:
    logging.getLogger("alembic").setLevel(logging.WARNING)  # of the copy
    if problem := wrong_account(settings):
        return fail(problem)
    try:
        encrypted = options.encrypt or options.passphrase_file is not None
        passphrase = read_passphrase(options.passphrase_file, new=True) if encrypted else ""
        manifest = back_up(settings, options.file, passphrase, settings_file(options.config))
    except (NoPassphrase, CopyFailed, GpgFailed) as error:
        return fail(str(error))
    except BadBackup as error:
        return fail(f"the backup could not be restored: {error}; move it elsewhere")
    except BlockingIOError:
        return fail("another backup is being made: wait until it has ended")
    except (SQLAlchemyError, sqlite3.Error) as error:
        return fail(f"the database cannot be read: {str(error).splitlines()[0]}")
    except OSError as error:
        return fail(f"{error.filename or options.file}: {error.strerror or error}")
    size = options.file.stat().st_size
    schema, count = manifest.schema_revision, len(manifest.members)
    print(f"{options.file}: {count} files, schema {schema}, {size / 1e6:.1f} MB")
    if not encrypted:
        print("It contains the portal's private keys: keep it as secret as these, or use --encrypt")
    return 0


def back_up(settings: Settings, target: Path, passphrase: str, file: Path) -> Manifest:
    """Write a backup; raises CopyFailed, BadBackup, BlockingIOError or others."""
    state = Path(settings.state.directory)
    with _draft(state / BACKUPS) as draft:
        (draft / "state").mkdir()
        # Copy the database first: keys are only added, so those it needs are copied later.
        url = settings.state.database_url
        revision = copy_database(url, draft / "state" / DATABASE)
        for name in ENTRIES:
            _copy(state / name, draft / "state" / name)
        (draft / "etc").mkdir()
        for path in (file, Path(settings.login.known_hosts)):
            if path.is_file():
                shutil.copyfile(path, draft / "etc" / _stored_as(path, file))
        manifest = Manifest(
            format=FORMAT,
            release=release(),
            schema_revision=revision,
            made=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            host=socket.gethostname(),
            database=make_url(url).get_backend_name(),
            members=describe(draft),
        )
        archive.write(target, draft, manifest, passphrase)
    return manifest


def _stored_as(path: Path, file: Path) -> str:
    return "slipway.toml" if path == file else "known_hosts"


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns(".*"))
    else:
        shutil.copyfile(source, target)


@contextmanager
def _draft(folder: Path) -> Iterator[Path]:
    """A temporary folder in the state directory, which is private and has enough space."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for leftover in folder.glob(".draft-*"):
            shutil.rmtree(leftover, ignore_errors=True)  # of a command that was killed
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder))
        try:
            yield draft
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    finally:
        os.close(descriptor)
