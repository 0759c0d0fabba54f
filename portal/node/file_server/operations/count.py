"""Totals of an operation, if they can be counted quickly."""

from __future__ import annotations

import os
import stat
import time

from portal.node.file_server import at
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.request import COPY, MODE_KIND, MOVE, UNPACK
from portal.node.file_server.roots import Roots
from portal.node.file_server.tree.tree import ITEM, Tree

SECONDS = 3.0
"""The count is abandoned after this time, so that the work begins."""


def size_of(status: os.stat_result) -> int:
    """Bytes of a file; 0 for anything else."""
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def count(operation: Operation, roots: Roots, device: int | None) -> None:
    """Set the operation's totals, or leave them unknown; `device`: that of a move's destination."""
    if operation.kind == UNPACK:  # its archives say what is in them
        return
    counter = _Counter(operation, device)
    for item in operation.items:
        with roots.resolve(item, follow=False) as dentry:
            if not counter.add(dentry.folder, dentry.name):
                return
    operation.files_total = counter.files
    operation.size_total = None if operation.kind == MODE_KIND else counter.bytes


class _Counter:
    def __init__(self, operation: Operation, device: int | None) -> None:
        self._operation, self._device = operation, device
        self._deadline = time.monotonic() + SECONDS
        self.files = 0
        self.bytes = 0

    def add(self, folder: int, name: bytes) -> bool:
        """Count a file or tree; returns False at the deadline. Raises OSError."""
        kind = self._operation.kind
        status = at.status(folder, name)
        if kind == MOVE and status.st_dev == self._device:
            self.files += 1
            return True
        with Tree(folder, one_file_system=kind != COPY) as tree:
            for step in tree.steps(name):
                self._operation.check()
                if time.monotonic() > self._deadline:
                    return False
                if step.kind == ITEM:
                    self.files += 1
                    self.bytes += size_of(step.status)
        return True
