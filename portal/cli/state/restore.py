"""`slipway restore`: the state directory as it was when a backup was made."""

from __future__ import annotations

import argparse
import logging
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from portal.adapters.backup import archive, database, state
from portal.adapters.backup.database import CopyFailed, copy_database
from portal.adapters.backup.gpg import GpgFailed
from portal.adapters.backup.manifest import BadBackup, Manifest
from portal.adapters.backup.state import DATABASE, InUse
from portal.adapters.certificates import CertificateAuthority
from portal.cli.state.account import fail, wrong_account
from portal.cli.state.passphrase import NoPassphrase, read_passphrase
from portal.config import Settings, StateSettings
from portal.store.engine import (
    OLDEST_RELEASE,
    is_known,
    is_too_old,
    newest,
    sqlite_file,
    upgrade,
)
from portal.version import release


class _SettingsOnly(argparse.Action):
    """An option with which the settings file need not exist."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """Store the folder, and that no settings are needed."""
        setattr(namespace, self.dest, values)
        namespace.settings_optional = True


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "restore", help="restore the state directory from a backup, while the portal is stopped"
    )
    parser.add_argument("file", type=Path, help="the backup")
    parser.add_argument("--passphrase-file", help="file whose first line is the passphrase")
    parser.add_argument(
        "--force", action="store_true", help="replace what exists; it is kept in a folder beside"
    )
    parser.add_argument(
        "--settings",
        metavar="FOLDER",
        type=Path,
        action=_SettingsOnly,
        help="only write the settings file and known_hosts of the backup to this folder",
    )
    parser.set_defaults(action=_restore)


def _restore(settings: Settings, options: argparse.Namespace) -> int:
    logging.getLogger("alembic").setLevel(logging.WARNING)  # of the copy
    if options.settings is None and (problem := wrong_account(settings)):
        return fail(problem)
    try:
        sealed = archive.is_encrypted(options.file)
        passphrase = read_passphrase(options.passphrase_file, new=False) if sealed else ""
        if options.settings is not None:
            return _write_settings(options.file, options.settings, passphrase)
        with state.alone(settings.state):
            return restore(settings.state, options.file, passphrase, options.force)
    except InUse as error:
        return fail(f"{error}: stop it first (systemctl stop slipway-web slipway-worker)")
    except (NoPassphrase, BadBackup, CopyFailed, GpgFailed) as error:
        return fail(f"{error}; nothing was changed")
    except (SQLAlchemyError, sqlite3.Error) as error:
        return fail(f"the database does not take it: {str(error).splitlines()[0]}")
    except OSError as error:
        return fail(f"{error.filename or options.file}: {error.strerror or error}")


def restore(settings: StateSettings, file: Path, passphrase: str, force: bool) -> int:
    """Restore an unused state directory; raises BadBackup, CopyFailed or OSError."""
    directory = Path(settings.directory)
    if state.is_interrupted(settings):
        state.complete(settings)
        print("An earlier restoration was interrupted, and is complete now. To restore another")
        print("backup, run the command again with --force.")
        return 0
    manifest = archive.read_manifest(file, passphrase)
    if problem := _unfit(manifest):
        raise BadBackup(problem)
    database_file = sqlite_file(settings.database_url)
    exists = not state.is_new(directory) or not database.is_empty(settings.database_url)
    if exists and not force:
        return fail(
            f"{directory} has a portal's state already: with --force it is replaced, and kept in "
            "a folder beside the new one"
        )
    if database_file is not None and database_file.parent.stat().st_dev != directory.stat().st_dev:
        return fail(f"{database_file} is on another file system than {directory}: move it first")
    if others := database.other_users(settings.database_url):
        raise InUse(f"{others} others are connected to the database, on this host or another")
    aside = f"replaced-{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    try:
        new = state.staging(directory)
        _prepare(file, new, passphrase)
        if database_file is None and exists:
            (directory / aside).mkdir(mode=0o700, exist_ok=True)
            copy_database(settings.database_url, directory / aside / DATABASE)
        state.commit(directory, aside)
    finally:
        state.discard(directory)
    state.complete(settings)
    print(f"restored: the state of {manifest.host} at {manifest.made}, release {manifest.release}")
    if (directory / aside).exists():
        print(f"the earlier state is in {directory / aside}")
    print("Next: slipway init, slipway check, then start the portal")
    return 0


def _unfit(manifest: Manifest) -> str:
    """Why this release cannot use a backup; "" if it can."""
    revision = manifest.schema_revision
    if is_known(revision):
        return ""
    if is_too_old(revision):
        return (
            f"the backup's schema, {revision}, is older than that of release {OLDEST_RELEASE}: "
            f"install {OLDEST_RELEASE}, restore it there and run `slipway init`, then install this "
            "release"
        )
    return (
        f"the backup was made by a newer release ({manifest.release}, schema {revision}) than this "
        f"one ({release()}, schema {newest()}): install that release or a newer one"
    )


def _prepare(file: Path, new: Path, passphrase: str) -> None:
    """Extract the state directory's files, and check that they can be used."""
    with tempfile.TemporaryDirectory(prefix="extracted-", dir=new.parent) as folder:
        archive.extract(file, Path(folder), passphrase)
        for part in (Path(folder) / "state").glob("*"):
            part.rename(new / part.name)
    for name in (DATABASE, *state.ENTRIES):
        if not (new / name).exists():
            raise BadBackup(f"{file} has no {name}")
    copy = new / DATABASE
    upgrade(f"sqlite:///{copy}")
    database.settle(copy)
    try:
        CertificateAuthority(new / "ca")
    except (OSError, ValueError) as error:
        raise BadBackup(f"the keys in {file} cannot be used ({error})") from None


def _write_settings(file: Path, folder: Path, passphrase: str) -> int:
    with tempfile.TemporaryDirectory(prefix="slipway-") as draft:
        archive.extract(file, Path(draft), passphrase)
        extracted = sorted((Path(draft) / "etc").glob("*"))
        taken = [path.name for path in extracted if (folder / path.name).exists()]
        if taken:
            return fail(f"{folder} has {' and '.join(taken)} already; nothing was changed")
        folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        for path in extracted:
            with open(path, "rb") as source, open(folder / path.name, "xb") as copy:
                shutil.copyfileobj(source, copy)  # never through a link
            print(folder / path.name)
    return 0
