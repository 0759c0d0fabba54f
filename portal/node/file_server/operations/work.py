"""Carries out one operation."""

from __future__ import annotations

import contextlib
import os

from portal.node.file_server.errors import Refused, refusal_of
from portal.node.file_server.operations.count import count
from portal.node.file_server.operations.fetching.fetch import fetch
from portal.node.file_server.operations.kinds.copying import copy
from portal.node.file_server.operations.kinds.deleting import delete
from portal.node.file_server.operations.kinds.modes import set_modes
from portal.node.file_server.operations.kinds.moving import move
from portal.node.file_server.operations.kinds.placing import Destination
from portal.node.file_server.operations.operation import (
    CANCELLED,
    DONE,
    FAILED,
    Cancelled,
    Operation,
)
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.operations.request import (
    COPY,
    DELETE,
    FETCH,
    MODE_KIND,
    MOVE,
    UNPACK,
    check_not_root,
)
from portal.node.file_server.operations.unpacking.unpack import unpack
from portal.node.file_server.roots import Dentry, Roots

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.location import Location
    from portal.node.file_server.operations.fetch_rules import FetchRules

_PAST = {
    COPY: "copied",
    MOVE: "moved",
    DELETE: "deleted",
    MODE_KIND: "changed",
    UNPACK: "unpacked",
    FETCH: "fetched",
}


def work(operation: Operation, roots: Roots, protected: Protected, rules: FetchRules) -> None:
    """Carry out an operation and record its end; raises nothing."""
    try:
        operation.check()
        _Work(operation, roots, protected, rules).run()
    except Cancelled:
        operation.end(CANCELLED, f"Cancelled. {_so_far(operation)}")
    except Refused as error:
        operation.end(FAILED, f"{error.detail} {_so_far(operation)}")
    except OSError as error:
        operation.end(FAILED, f"{refusal_of(error).detail} {_so_far(operation)}")
    except Exception as error:  # a bug, which would only end this thread
        operation.end(FAILED, f"The file server has an error ({type(error).__name__}).")
    else:
        failed = operation.problem_count and not operation.files
        operation.end(FAILED if failed else DONE, _summary(operation))


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _so_far(operation: Operation) -> str:
    """The progress of an operation that did not complete, in words."""
    if operation.kind == FETCH:
        return ""
    verb = "was" if operation.files == 1 else "were"
    words = f"{_files(operation.files)} {verb} {_PAST[operation.kind]} before."
    if operation.kind in (COPY, UNPACK):
        return words + " Items that were not complete are not there."
    return words


def _summary(operation: Operation) -> str:
    words = f"{_files(operation.files)} {_PAST[operation.kind]}"
    if operation.skipped:
        words += f", {operation.skipped:,} skipped"
    if operation.problem_count:
        problems = "problem" if operation.problem_count == 1 else "problems"
        words += f", {operation.problem_count:,} {problems}"
    return words + "."


class _Work:
    def __init__(
        self, operation: Operation, roots: Roots, protected: Protected, rules: FetchRules
    ) -> None:
        self._operation, self._roots, self._protected = operation, roots, protected
        self._rules = rules

    def run(self) -> None:
        """Process all items; raises Refused, OSError or Cancelled if it cannot continue."""
        if self._operation.to is None:
            self._items(None)
            return
        with self._roots.folder(self._operation.to, to_change=True) as folder:
            to = Destination(self._operation, folder, self._protected)
            if self._operation.kind == FETCH:
                fetch(self._operation, to, self._rules)
            else:
                self._items(to)

    def _items(self, to: Destination | None) -> None:
        device = os.fstat(to.folder).st_dev if to else None
        with contextlib.suppress(Refused, OSError):  # the work itself reports errors
            count(self._operation, self._roots, device)
        for item in self._operation.items:
            self._operation.check()
            try:
                with self._roots.resolve(item, follow=False, to_change=True) as dentry:
                    self._item(item, dentry, to)
            except Refused as error:
                if error.code != "not_found" or self._operation.kind != DELETE:
                    self._operation.note(item, error)

    def _item(self, item: Location, dentry: Dentry, to: Destination | None) -> None:
        operation = self._operation
        check_not_root(operation, dentry)
        if operation.kind == DELETE:
            delete(operation, item, dentry, self._protected)
        elif operation.kind == MODE_KIND:
            set_modes(operation, item, dentry)
        elif to is not None and operation.kind == COPY:
            copy(operation, item, dentry, to)
        elif to is not None and operation.kind == UNPACK:
            unpack(operation, item, dentry, to)
        elif to is not None:
            move(operation, item, dentry, to, self._protected)
