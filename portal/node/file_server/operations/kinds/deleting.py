"""Deletes files and folders recursively."""

from __future__ import annotations

import errno

from portal.node.file_server import at
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, shown
from portal.node.file_server.operations.count import size_of
from portal.node.file_server.operations.kinds.copying import CopiedFiles
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.operations.protected import Protected
from portal.node.file_server.roots import Dentry
from portal.node.file_server.tree.tree import ENTER, ITEM, LEAVE, Step, Tree


def delete(
    operation: Operation,
    item: Location,
    dentry: Dentry,
    protected: Protected,
    copied: CopiedFiles | None = None,
) -> None:
    """Delete a file or tree, which may be missing; raises Refused, Cancelled.

    `copied`: delete only these files.
    """
    with Tree(dentry.folder, one_file_system=True) as tree:
        try:
            for step in tree.steps(dentry.name):
                operation.check()
                operation.current = shown(step.name)
                location = Location(item.root, item.names + tree.below(step))
                with operation.problems_of(location):
                    _step(operation, tree, step, protected, copied)
        except FileNotFoundError:
            return


def _step(
    operation: Operation, tree: Tree, step: Step, protected: Protected, copied: CopiedFiles | None
) -> None:
    try:
        if step.kind == ENTER:
            step.skip = True
            protected.check(tree.folder, tree.inside, step.name)
            step.skip = False
        elif step.kind == LEAVE:
            _remove_folder(operation, tree, step)
        elif step.kind == ITEM:
            if copied is not None and step.status not in copied:
                raise Refused(409, "changed", "It was changed during the move and remains here.")
            at.unlink(tree.folder, step.name)
            if copied is None:
                operation.files += 1
                operation.size += size_of(step.status)
        elif step.error is not None:
            _raise_problem(step.error)
    except FileNotFoundError:
        return


def _remove_folder(operation: Operation, tree: Tree, step: Step) -> None:
    try:
        at.remove_folder(tree.folder, step.name)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise
        if not operation.problem_count:  # otherwise the remaining files are listed as problems
            raise Refused(409, "changed", "Something came into it meanwhile.") from error


def _raise_problem(error: OSError) -> None:
    if error.errno == errno.EXDEV:
        raise Refused(409, "mounted", "Another file system is mounted here; it remains.")
    raise error
