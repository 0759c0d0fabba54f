"""A temporary PostgreSQL server of the tests' own, on a unix socket."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlmodel import SQLModel

from portal.store.engine import upgrade

_TEMPLATE = "migrated"


def programs() -> Path | None:
    """The folder of PostgreSQL's own programs, of the newest version; None if not installed."""
    found = [Path(name).resolve().parent for name in [shutil.which("initdb")] if name]
    found += [file.parent for file in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(found, key=lambda folder: folder.parent.name.zfill(4), default=None)


class PostgreSQL:
    """A server with a database that all migrations were applied to, and copies of it."""

    def __init__(self, folder: Path) -> None:
        self._programs = programs()
        self.folder = folder
        self._numbers = itertools.count()
        self._account = _unprivileged()
        if self._account is not None:
            os.chown(folder, *self._account)
        self._do("initdb", "--auth=trust", "--no-sync", "--username=slipway", f"{folder}/data")
        self.start()
        self._query(f"CREATE DATABASE {_TEMPLATE}")
        upgrade(self._url(_TEMPLATE))

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        quick = "-c fsync=off -c full_page_writes=off -c shared_buffers=16MB -c max_connections=200"
        socket = f"-c listen_addresses= -c unix_socket_directories={self.folder}"
        log = ("-l", f"{self.folder}/log")
        self._do(
            "pg_ctl", "-D", f"{self.folder}/data", *log, "-w", "-o", f"{socket} {quick}", "start"
        )

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server."""
        self._do("pg_ctl", "-D", f"{self.folder}/data", "-m", mode, "-w", "stop")

    def new_database(self, empty: bool = False) -> str:
        """The URL of a new database, which is migrated unless it is to be empty."""
        name = f"test{next(self._numbers)}"
        self._query(f"CREATE DATABASE {name} TEMPLATE {'template0' if empty else _TEMPLATE}")
        return self._url(name)

    def shared_database(self) -> str:
        """The URL of the migrated database, without rows; for one test at a time."""
        engine = create_engine(self._url(_TEMPLATE))
        with engine.begin() as connection:
            # Quicker than TRUNCATE, which makes new files.
            for table in reversed(SQLModel.metadata.sorted_tables):
                connection.execute(table.delete())
        engine.dispose()
        return self._url(_TEMPLATE)

    def _url(self, name: str) -> str:
        return f"postgresql+psycopg://slipway@/{name}?host={self.folder}"

    def _query(self, statement: str) -> None:
        engine = create_engine(self._url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()

    def _do(self, program: str, *words: str) -> None:
        account = self._account or (None, None)
        command: Sequence[str] = (f"{self._programs}/{program}", *words)
        environment = {name: value for name, value in os.environ.items() if name != "PGDATA"}
        subprocess.run(
            command,
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            env=environment,
            user=account[0],
            group=account[1],
            extra_groups=[] if self._account else None,
        )


def _unprivileged() -> tuple[int, int] | None:
    """UID and GID for the server, which refuses to run as root; None for the tests' own."""
    if os.geteuid() != 0:
        return None
    account = pwd.getpwnam("nobody")
    return account.pw_uid, account.pw_gid


def short_folder() -> Path:
    """A new folder in memory, whose path is short enough for a unix socket."""
    place = next(name for name in ("/dev/shm", "/tmp") if os.access(name, os.W_OK))
    folder = Path(tempfile.mkdtemp(prefix="slipway-pg-", dir=place))
    folder.chmod(0o755)
    return folder
