"""Records of operations in the user's home, for the server after one that was killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import threading
import time

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import parse
from portal.node.file_server.operations.operation import (
    ASIDE,
    DONE,
    INTERRUPTED,
    RUNNING,
    WAITING,
    Operation,
)
from portal.node.file_server.renames import rename_new
from portal.node.file_server.roots import is_private
from portal.node.file_server.state import make_private
from portal.node.file_server.tree.tree import identity, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from portal.node.file_server.roots import Roots

SECONDS = 2.0
"""Between two records of the same operation."""
PATIENCE = 1.0
"""For the first record; operations also run without a record, if the home is full or away."""
KEPT_SECONDS = 3600.0
_ABANDONED_SECONDS = 7 * 86400.0
"""Age of records of another portal or host that are deleted."""
FOLDER = os.path.join(".slipway", "files", "operations")


class Records:
    """Files `<scope>-<id>.json`; servers of other hosts and portals have other scopes."""

    def __init__(self, home: str | None, scope: str) -> None:
        self._folder = os.path.join(home, FOLDER) if home else None
        self._scope = scope
        self._name = re.compile(re.escape(scope) + r"-([0-9a-f]{16})\.json")
        self._changed = threading.Condition()
        self._running: list[Operation] = []
        self._new: list[Operation] = []
        self._is_writing = False

    def begin(self, operation: Operation) -> None:
        """Record the start, so that the next server can clean up."""
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            self._running.append(operation)
        self._queue(operation)
        with self._changed:
            while operation in self._new and time.monotonic() < deadline:
                self._changed.wait(deadline - time.monotonic())

    def end(self, operation: Operation) -> None:
        """Record the end."""
        with self._changed:
            self._running.remove(operation)
        self._queue(operation)

    @contextlib.contextmanager
    def noted(self, operation: Operation) -> Iterator[None]:
        """Record an operation for as long as it runs, only to clean up after a kill."""
        operation.state, operation.is_listed = RUNNING, False
        self.begin(operation)
        try:
            yield
        finally:
            operation.end(DONE, "")
            self.end(operation)

    def _queue(self, operation: Operation) -> None:
        if self._folder is None:
            return
        with self._changed:
            if operation not in self._new:
                self._new.append(operation)
            self._changed.notify_all()
            if not self._is_writing:
                self._is_writing = True
                threading.Thread(target=self._write_all, daemon=True).start()

    def _write_all(self) -> None:
        """Write records while operations run; only this thread waits for a home that is away."""
        while True:
            with self._changed:
                if not self._new and not self._running:
                    self._is_writing = False
                    return
                if not self._new:
                    self._changed.wait(SECONDS)
                due = self._new or list(self._running)
            for operation in list(due):
                ended = operation.ended
                self._write(operation)
                with self._changed:
                    # One that has ended meanwhile is written again.
                    if operation in self._new and operation.ended == ended:
                        self._new.remove(operation)
                    self._changed.notify_all()

    def _path(self, operation: Operation) -> str:
        return os.path.join(self._folder or "", f"{self._scope}-{operation.id}.json")

    def _write(self, operation: Operation) -> None:
        if operation.ended and not operation.is_listed:
            self.forget(operation)
            return
        path = self._path(operation)
        new = path + ".new"
        try:
            make_private(os.path.dirname(path))
            with open(new, "w", encoding="utf-8") as file:
                json.dump({**operation.as_json(), "parts": operation.parts}, file)
            os.replace(new, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(new)

    def forget(self, operation: Operation) -> None:
        """Delete a record."""
        with contextlib.suppress(OSError):
            os.unlink(self._path(operation))

    # After a start

    def earlier(self, roots: Roots) -> Iterator[Operation]:
        """Yield earlier servers' operations of the last hour; removes their incomplete files."""
        try:
            names = os.listdir(self._folder) if self._folder else []
        except OSError:
            return
        interrupted = []
        for name in names:
            path = os.path.join(self._folder or "", name)
            try:
                operation = self._read(path, name)
            except (OSError, ValueError, TypeError, KeyError, RecursionError, Refused):
                _remove_abandoned(path)
                continue
            if operation.state in (WAITING, RUNNING):
                _interrupt(operation)
                interrupted.append(operation)
            if (operation.ended or 0.0) > time.time() - KEPT_SECONDS:
                yield operation
            else:
                self.forget(operation)
        for (
            operation
        ) in interrupted:  # recorded afterwards; if this server is killed, the next one repeats it
            clean_up(roots, operation)
            self._write(operation)

    def _read(self, path: str, name: str) -> Operation:
        match = self._name.fullmatch(name)
        if not match:
            raise ValueError(name)
        with open(path, "rb") as file:
            return restore(json.load(file), match[1])


def _interrupt(operation: Operation) -> None:
    files = "1 file was" if operation.files == 1 else f"{operation.files:,} files were"
    progress = f" At least {files} done before." if operation.files else ""
    operation.end(INTERRUPTED, f"The file server ended meanwhile.{progress} Start it again.")


def restore(data: Any, number: str) -> Operation:
    """Restore an operation from a record; raises ValueError, TypeError, KeyError or Refused."""
    total, size = data["files_total"], data["bytes_total"]
    ended = data["ended"]
    return Operation(
        kind=str(data["kind"]),
        items=tuple(parse(str(item)) for item in data["items"]),
        to=parse(str(data["to"])) if data["to"] else None,
        on_conflict=str(data["on_conflict"]),
        mode=str(data["mode"]),
        url=str(data.get("url", "")),
        id=number,
        state=str(data["state"]),
        files=int(data["files"]),
        files_total=None if total is None else int(total),
        size=int(data["bytes"]),
        size_total=None if size is None else int(size),
        item_count=int(data["item_count"]),
        skipped=int(data["skipped"]),
        detail=str(data["detail"]),
        problems=[
            {key: str(problem[key]) for key in ("path", "name", "detail")}
            for problem in data["problems"]
        ],
        problem_count=int(data["problem_count"]),
        started=float(data["started"]),
        ended=None if ended is None else float(ended),
        parts=[int(inode) for inode in data.get("parts", ())],
    )


def clean_up(roots: Roots, operation: Operation) -> None:
    """Remove the incomplete files of a killed operation from its destination.

    Where other users can write, they could have given a folder of the user's the name of a part:
    there, only recorded inodes are removed. What was about to be replaced is put back first if
    nothing has its name.
    """
    if operation.to is None:
        return
    with (
        contextlib.suppress(Refused, OSError),
        roots.folder(operation.to, to_change=True) as folder,
    ):
        trusted = is_private(folder)
        for name in at.names(folder):
            if name.startswith(operation.part_prefix):
                status = at.status(folder, name)
                if name.endswith(ASIDE):
                    _put_back(folder, name)
                if trusted or status.st_ino in operation.parts:
                    remove(folder, name, identity(status))


def _put_back(folder: int, name: bytes) -> None:
    """Give what was set aside its name again, unless its replacement has that."""
    with contextlib.suppress(OSError), at.opened(folder, name, at.READ_FOLDER) as aside:
        for replaced in at.names(aside):
            with contextlib.suppress(OSError):  # an empty folder only reserved the name
                at.remove_folder(folder, replaced)
            with contextlib.suppress(FileExistsError):
                rename_new(aside, replaced, folder, replaced)


def _remove_abandoned(path: str) -> None:
    with contextlib.suppress(OSError):
        if os.stat(path).st_mtime < time.time() - _ABANDONED_SECONDS:
            os.unlink(path)
