"""Changes permissions of files and folders recursively."""

from __future__ import annotations

import os
import stat

from portal.node.file_server.location import PART_PREFIX, Location, shown
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.roots import Dentry
from portal.node.file_server.tree.tree import ITEM, LEAVE, Step, Tree, change_mode

_SPECIAL_OF_FOLDERS = stat.S_ISGID | stat.S_ISVTX


def resulting_mode(mode: int, old: int, *, is_folder: bool, is_top: bool) -> int:
    """The new permissions of a file or folder if `mode` is requested for the item.

    Read permission of a folder includes execute; a file inside gets execute only if it had it.
    """
    readable = (mode & 0o444) >> 2
    if is_folder:
        return mode | readable | (old & _SPECIAL_OF_FOLDERS)
    if is_top or old & 0o111:
        return mode
    return mode & ~0o111


def set_modes(operation: Operation, item: Location, dentry: Dentry) -> None:
    """Change the permissions of a file or tree; raises Refused, Cancelled."""
    mode = int(operation.mode, 8)

    def opened(status: os.stat_result) -> int:
        old = stat.S_IMODE(status.st_mode)
        if not stat.S_ISDIR(status.st_mode) or old & 0o500 == 0o500:
            return old
        return resulting_mode(mode, old, is_folder=True, is_top=False)

    def before(folder: int, name: bytes) -> None:
        """First let the owner read a folder."""
        if mode & 0o400:
            change_mode(folder, name, opened)

    with Tree(dentry.folder, one_file_system=True, before=before) as tree:
        for step in tree.steps(dentry.name):
            operation.check()
            if step.name.startswith(PART_PREFIX):
                step.skip = True
                continue
            operation.current = shown(step.name)
            location = Location(item.root, item.names + tree.below(step))
            with operation.problems_of(location):
                _step(operation, tree, step, mode)


def _step(operation: Operation, tree: Tree, step: Step, mode: int) -> None:
    is_top = not tree.depth

    def mode_of(status: os.stat_result) -> int:
        is_folder = stat.S_ISDIR(status.st_mode)
        return resulting_mode(mode, status.st_mode, is_folder=is_folder, is_top=is_top)

    if step.kind == LEAVE:
        os.fchmod(tree.inside, mode_of(os.fstat(tree.inside)))
    elif step.kind == ITEM and (is_top or not stat.S_ISLNK(step.status.st_mode)):
        change_mode(tree.folder, step.name, mode_of)
        operation.files += 1
    elif step.error is not None:
        raise step.error
