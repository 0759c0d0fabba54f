"""Copies files, links and folders: complete under another name first, then renamed."""

from __future__ import annotations

import contextlib
import os
import stat
from array import array
from bisect import bisect_left

from portal.node.file_server import at
from portal.node.file_server.access.inheritance import Inheritance, inheritance_of
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.copy_data import copy_data
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import PART_PREFIX, Location, shown
from portal.node.file_server.operations.kinds.attributes import create_copy, keep, keep_link
from portal.node.file_server.operations.kinds.placing import Destination
from portal.node.file_server.operations.operation import Operation
from portal.node.file_server.roots import Dentry, is_own_link, kind_words, open_regular
from portal.node.file_server.tree.tree import (
    ENTER,
    ITEM,
    LEAVE,
    PROBLEM,
    Descent,
    Step,
    Tree,
    identity,
    remove,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.node.file_server.tree.tree import Identity


class CopiedFiles:
    """The copied files with their states, in eight bytes each."""

    def __init__(self) -> None:
        self._keys = array("q")
        self._sorted = False

    def add(self, status: os.stat_result) -> None:
        """Add a file that is copied."""
        self._keys.append(self._key(status))

    def __contains__(self, status: os.stat_result) -> bool:
        if not self._sorted:
            self._keys = array("q", sorted(self._keys))
            self._sorted = True
        key = self._key(status)
        index = bisect_left(self._keys, key)
        return index < len(self._keys) and self._keys[index] == key

    @staticmethod
    def _key(status: os.stat_result) -> int:
        return hash((status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size))


def copy(
    operation: Operation,
    item: Location,
    dentry: Dentry,
    to: Destination,
    copied: CopiedFiles | None = None,
) -> bool:
    """Copy a file or tree; returns whether it is complete. Raises Refused, OSError, Cancelled."""
    name = to.name or item.name or os.fsencode(item.root)
    if to.refuses(dentry, name):
        return False
    part = operation.new_part()
    try:
        with Tree(dentry.folder) as tree:
            copier = _Copier(operation, item, tree, to.folder, given_by(to.folder), copied)
            try:
                complete = copier.run(dentry.name, part)
            finally:
                copier.close()
        if complete and (final := to.put(to.folder, part, name)) is not None:
            check_put(to.folder, final, copier.top)
    finally:
        remove(to.folder, part, copier.top)
    return complete


def given_by(folder: int) -> Inheritance:
    """What an open folder gives to copies; raises Refused if its list is not understood."""
    try:
        return inheritance_of(folder)
    except ValueError:
        detail = "The access control list of the destination is not understood."
        raise Refused(409, "share", detail) from None


def stays_below(goal: bytes, depth: int) -> bool:
    """Whether a link's target lies below the folder `depth` levels above the link.

    “..” is accepted only at the start, since after other names these could be links.
    """
    names = [name for name in goal.split(b"/") if name not in (b"", b".")]
    ups = 0
    while ups < len(names) and names[ups] == b"..":
        ups += 1
    return not goal.startswith(b"/") and ups <= depth and b".." not in names[ups:]


def check_new(folder: int) -> None:
    """Raise Refused if an open folder is not the new one: other users may have exchanged it."""
    if os.fstat(folder).st_uid != os.geteuid() or at.names(folder):
        raise Refused(409, "changed", "Somebody else changed the copy while it was made.")


def check_put(folder: int, name: bytes, expected: Identity) -> None:
    """Raise Refused if the name does not lead to the copy after the rename by name."""
    with contextlib.suppress(FileNotFoundError):
        if identity(at.status(folder, name)) == expected:
            return
    raise Refused(
        409, "changed", f"“{shown(name)}” was changed by somebody else while it was made."
    )


class _Copier:
    """Copies one tree into an open folder."""

    def __init__(
        self,
        operation: Operation,
        item: Location,
        tree: Tree,
        folder: int,
        given: Inheritance,
        copied: CopiedFiles | None,
    ) -> None:
        self._operation, self._item, self._tree, self._copied = operation, item, tree, copied
        self._given = given
        self._target = Descent(folder)
        self.top: Identity = (-1, -1)
        """The file that was created under the part's name; only that is removed again."""

    def close(self) -> None:
        self._target.close()

    def run(self, name: bytes, part: bytes) -> bool:
        """Copy under the name of a part; returns whether the part can be renamed."""
        complete = False
        for step in self._tree.steps(name):
            self._operation.check()
            is_top = not self._tree.depth
            if step.name.startswith(PART_PREFIX) and not is_top:
                step.skip = True  # an incomplete file of another request
                continue
            self._operation.current = shown(step.name)
            target = part if is_top else step.name
            location = Location(self._item.root, self._item.names + self._tree.below(step))
            with self._operation.problems_of(location):
                copied = self._step(step, target, location)
                complete = complete or (is_top and copied)
        return complete

    def _step(self, step: Step, target: bytes, location: Location) -> bool:
        if step.kind == PROBLEM:
            assert step.error is not None  # noqa: S101
            raise step.error
        if step.kind == LEAVE:
            self._leave(step)
        elif step.kind == ENTER:
            self._enter(step, target)
        elif step.kind == ITEM:
            self._copy_item(step, target, location)
        return True

    def _enter(self, step: Step, target: bytes) -> None:
        step.skip = True
        at.make_folder(self._target.folder, target, 0o700)
        created = self._target.down(target)
        try:
            check_new(self._target.folder)
        except Refused:
            self._target.up()
            raise
        self._note_top(created)
        step.skip = False

    def _note_top(self, created: os.stat_result) -> None:
        if not self._tree.depth:
            self.top = identity(created)
            self._operation.parts.append(created.st_ino)

    def _leave(self, step: Step) -> None:
        try:
            source = OpenFile(self._tree.inside, (), step.status)
            keep(source, self._target.folder, self._given)
        finally:
            self._target.up()

    def _copy_item(self, step: Step, target: bytes, location: Location) -> None:
        mode = step.status.st_mode
        if stat.S_ISLNK(mode):
            self._copy_link(step, target)
            self._note(step.status)
        elif stat.S_ISREG(mode):
            self._copy_file(step, target, location)
        else:
            raise Refused(409, "special", f"This is {kind_words(mode)} and was left out.")
        self._operation.files += 1

    def _copy_link(self, step: Step, target: bytes) -> None:
        """Copy a link whose target is trusted, or inside the copy.

        The new link belongs to the user, and is therefore followed.
        """
        goal = at.read_link(self._tree.folder, step.name)
        depth = len(self._tree.below(step)) - 1
        if not is_own_link(self._tree.folder, step.status) and not stays_below(goal, depth):
            words = "This link leads out of what is copied, and others could have made it."
            raise Refused(409, "link", f"{words} It was left out.")
        at.symlink(goal, self._target.folder, target)
        created = at.status(self._target.folder, target)
        if not stat.S_ISLNK(created.st_mode):  # exchanged: do not remove the other file
            raise Refused(409, "changed", "Somebody else changed the copy while it was made.")
        self._note_top(created)
        keep_link(self._target.folder, target, step.status)

    def _copy_file(self, step: Step, target: bytes, location: Location) -> None:
        folder = self._target.folder
        source = open_regular(self._tree.folder, step.name)
        try:
            before = os.fstat(source)
            original = OpenFile(source, (), before)
            written = create_copy(folder, target, original, self._given)
            try:
                self._note_top(os.fstat(written))
                copy_data(source, written, self._operation.add_bytes)
                keep(original, written, self._given)
            except BaseException:
                at.unlink(folder, target)
                raise
            finally:
                os.close(written)
            after = os.fstat(source)
        finally:
            os.close(source)
        if (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size):
            self._operation.problem(location, "It changed while it was copied.")
        else:
            self._note(before)

    def _note(self, status: os.stat_result) -> None:
        if self._copied is not None:
            self._copied.add(status)
