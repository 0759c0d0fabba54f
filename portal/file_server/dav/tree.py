"""Trees for WebDAV: removed, copied and moved by descriptor, following no link."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat

from portal.file_server.errors import Refused
from portal.file_server.location import PART_PREFIX, shown
from portal.file_server.operations.kinds.attributes import keep
from portal.file_server.operations.kinds.data import copy_data
from portal.file_server.renames import rename_new
from portal.file_server.roots import Place, open_file
from portal.file_server.tree.tree import ENTER, LEAVE, PROBLEM, Step, Tree, identity
from portal.file_server.tree.tree import remove as discard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from portal.file_server.operations.protected import Protected

DEEPEST = 200
"""Folders in folders; each takes a descriptor."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove(place: Place, protected: Protected) -> None:
    """Delete a file, link or folder with all that it contains; raises Refused or OSError."""
    with Tree(place.folder, one_file_system=True) as tree:
        for step in tree.steps(place.name):
            if step.kind == PROBLEM and step.error is not None:
                raise step.error
            with contextlib.suppress(FileNotFoundError):  # deleted by somebody else meanwhile
                _remove_step(tree, step, protected)


def _remove_step(tree: Tree, step: Step, protected: Protected) -> None:
    if step.kind == ENTER:
        protected.check(identity(step.status), shown(step.name))
    elif step.kind == LEAVE:
        os.rmdir(step.name, dir_fd=tree.folder)
    else:
        os.unlink(step.name, dir_fd=tree.folder)


def copy(source: Place, target: Place, *, deep: bool, replace: bool) -> None:
    """Copy a file or folder; it appears when it is complete. Raises Refused or OSError."""
    part = PART_PREFIX + secrets.token_hex(8).encode()
    try:
        _copy(source, Place(target.location, target.folder, part), deep, 0)
        _settle(Place(target.location, target.folder, part), target, replace=replace)
    except BaseException:
        discard(target.folder, part)
        raise


def move(source: Place, target: Place, protected: Protected, *, replace: bool) -> None:
    """Move a file or folder, to another file system by copying; raises Refused or OSError."""
    try:
        _settle(source, target, replace=replace)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy(source, target, deep=True, replace=replace)
        remove(source, protected)


def _settle(source: Place, target: Place, *, replace: bool) -> None:
    """Rename; only `replace` replaces something."""
    if replace:
        os.rename(source.name, target.name, src_dir_fd=source.folder, dst_dir_fd=target.folder)
    else:
        rename_new(source.folder, source.name, target.folder, target.name)


def _copy(source: Place, target: Place, deep: bool, depth: int) -> None:
    mode = source.status().st_mode
    if stat.S_ISDIR(mode):
        _copy_folder(source, target, deep, depth)
    elif stat.S_ISLNK(mode):
        link = os.readlink(source.name, dir_fd=source.folder)
        os.symlink(link, target.name, dir_fd=target.folder)
    else:
        _copy_file(source, target)


def _copy_folder(source: Place, target: Place, deep: bool, depth: int) -> None:
    _check_depth(depth)
    os.mkdir(target.name, 0o700, dir_fd=target.folder)
    with contextlib.ExitStack() as stack:
        folders = []
        for place in (source, target):
            folders.append(os.open(place.name, _FOLDER, dir_fd=place.folder))
            stack.callback(os.close, folders[-1])
        for name in map(os.fsencode, os.listdir(folders[0])) if deep else ():
            if not name.startswith(PART_PREFIX):
                inner = (Place(source.location, folder, name) for folder in folders)
                _copy(next(inner), next(inner), deep, depth + 1)
        keep(folders[0], folders[1], os.fstat(folders[0]))


def _copy_file(source: Place, target: Place) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with contextlib.ExitStack() as stack:
        found = open_file(source)
        stack.callback(os.close, found)
        made = os.open(target.name, flags, 0o600, dir_fd=target.folder)
        stack.callback(os.close, made)
        copy_data(found, made, lambda _bytes: None)
        keep(found, made, os.fstat(found))
        os.fsync(made)


def _check_depth(depth: int) -> None:
    if depth > DEEPEST:
        raise Refused(409, "too_deep", f"There are more than {DEEPEST} folders in each other.")
