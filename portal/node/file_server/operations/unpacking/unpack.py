"""Unpacks an archive: complete under another name first, then renamed, as copies are."""

from __future__ import annotations

import contextlib
import os
import stat

from portal.node.file_server import at
from portal.node.file_server.access.walk import OpenFile
from portal.node.file_server.errors import Refused
from portal.node.file_server.location import Location, shown
from portal.node.file_server.operations.archive_formats import ZIP, folder_name, format_of
from portal.node.file_server.operations.kinds.attributes import keep_mode
from portal.node.file_server.operations.kinds.copying import (
    check_new,
    check_put,
    given_by,
    stays_below,
)
from portal.node.file_server.operations.unpacking.limits import Limits
from portal.node.file_server.operations.unpacking.members import (
    FILE,
    FOLDER,
    HARD_LINK,
    LINK,
    ArchiveError,
    names_of,
)
from portal.node.file_server.operations.unpacking.reading import ArchiveFile, decompressed
from portal.node.file_server.operations.unpacking.tars import TarArchive
from portal.node.file_server.operations.unpacking.zips import ZipArchive
from portal.node.file_server.replacing import PERMISSIONS
from portal.node.file_server.roots import open_file
from portal.node.file_server.tree.tree import LEAVE, Descent, Tree, identity, remove
from portal.node.file_server.writing import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from portal.node.file_server.operations.kinds.placing import Destination
    from portal.node.file_server.operations.operation import Operation
    from portal.node.file_server.operations.unpacking.members import Archive, Member
    from portal.node.file_server.roots import Dentry

    Names = tuple[bytes, ...]

_NO_FOLDER = "“{}” in the archive is not a folder. It was left out."


def unpack(operation: Operation, item: Location, dentry: Dentry, to: Destination) -> None:
    """Unpack an archive into a new folder; raises Refused, OSError, Cancelled."""
    name = folder_name(dentry.name)
    if to.refuses(dentry, name):
        return
    before = operation.files, operation.size, operation.problem_count
    problems = len(operation.problems)
    file = open_file(dentry)
    try:
        _unpack(operation, item, file, to, name)
    except BaseException as error:  # then nothing of it is there
        operation.files, operation.size, operation.problem_count = before
        del operation.problems[problems:]
        if isinstance(error, ArchiveError):
            raise Refused(409, error.code, f"“{shown(item.name)}”: {error.detail}") from error
        raise
    finally:
        os.close(file)


def _unpack(operation: Operation, item: Location, file: int, to: Destination, name: bytes) -> None:
    part = operation.new_part()
    at.make_folder(to.folder, part, 0o700)
    folder = _NewFolder(operation, item, to.folder, part)
    try:
        source = ArchiveFile(file)
        limits = Limits(source.size, at.space(to.folder))
        with contextlib.closing(_opened(operation, item, file, source)) as archive:
            operation.size_total = None
            if archive.totals is not None:
                limits.check(*archive.totals)
                operation.size_total = operation.size + archive.totals[1]
            for member in archive.members():
                limits.add_entry(member.size)
                folder.add(member, limits)
            if archive.ends_early:
                operation.problem(item, "Its end is missing, and perhaps some of its contents.")
        source.check_unchanged()
        folder.finish()
        _put(folder, to, part, name)
    finally:
        folder.close()
        remove(to.folder, part, folder.identity)


def _opened(operation: Operation, item: Location, file: int, source: ArchiveFile) -> Archive:
    format = format_of(item.name)
    if format == ZIP:
        return ZipArchive(source, operation.check)
    return TarArchive(decompressed(file, source, format))


def _put(folder: _NewFolder, to: Destination, part: bytes, name: bytes) -> None:
    """Give the folder its final name: the only one in it instead if that has the same name."""
    if folder.contains_only(name):
        expected = identity(at.status(folder.top, name))
        final = to.put(folder.top, name, name)
    else:
        expected = folder.identity
        final = to.put(to.folder, part, name)
    if final is not None:
        check_put(to.folder, final, expected)


class _NewFolder:
    """The folder of an archive while it is filled; until then, only the user can enter it."""

    def __init__(self, operation: Operation, item: Location, parent: int, part: bytes) -> None:
        self._operation, self._item = operation, item
        self._parent, self._part = parent, part
        self._modes: dict[Names, tuple[int | None, int | None]] = {}
        """Permissions and times of folders, which are set at the end."""
        self._given = given_by(parent)
        self._place: list[bytes] = []
        with at.opened(parent, part, at.READ_FOLDER) as opened:
            self.identity = identity(os.fstat(opened))
            operation.parts.append(self.identity[1])
            check_new(opened)
            self._descent = Descent(opened)
        self.top = os.dup(self._descent.folder)

    def close(self) -> None:
        """Close all descriptors."""
        self._descent.close()
        os.close(self.top)

    def contains_only(self, name: bytes) -> bool:
        """Whether there is nothing but a folder of this name."""
        is_alone = at.names(self.top) == [name]
        return is_alone and stat.S_ISDIR(at.status(self.top, name).st_mode)

    def add(self, member: Member, limits: Limits) -> None:
        """Add a member; one that cannot be is a problem.

        Raises ArchiveError, Refused, Cancelled.
        """
        self._operation.check()
        name = member.path.rstrip(b"/").rsplit(b"/", 1)[-1]
        self._operation.current = shown(name)
        with self._operation.problems_of(self._item.child(name[:255] or b".")):
            names = names_of(member.path)
            if not names:
                self._modes[names] = member.mode, member.time
                return
            self._go(names[:-1])
            if member.kind == FOLDER:
                self._go(names)
                self._modes[names] = member.mode, member.time
                return
            self._make_room(names[-1])
            self._add_file(member, names, limits)
            self._operation.files += 1

    def _go(self, names: Names) -> None:
        """Enter a folder of the new one, and create it where it is missing; raises Refused."""
        common = 0
        while self._place[: common + 1] == list(names[: common + 1]) and common < len(names):
            common += 1
        while len(self._place) > common:
            self._descent.up()
            self._place.pop()
        for name in names[common:]:
            with contextlib.suppress(FileExistsError):
                at.make_folder(self._descent.folder, name, 0o700)
            try:
                self._descent.down(name)
            except OSError as error:
                if stat.S_ISDIR(at.status(self._descent.folder, name).st_mode):
                    raise
                detail = _NO_FOLDER.format(shown(name))
                raise Refused(409, "not_folder", detail) from error
            self._place.append(name)

    def _make_room(self, name: bytes) -> None:
        """Delete a file of this name: the last of several counts, as with tar. Raises Refused."""
        folder = self._descent.folder
        try:
            mode = at.status(folder, name).st_mode
        except FileNotFoundError:
            return
        if stat.S_ISDIR(mode):
            raise Refused(409, "exists", "It is a folder in the archive, too, and was left out.")
        at.unlink(folder, name)
        self._operation.files -= 1
        location = Location(self._item.root, (*self._item.names, *self._place, name))
        self._operation.problem(location, "It is in the archive more than once; the last counts.")

    def _add_file(self, member: Member, names: Names, limits: Limits) -> None:
        folder, name = self._descent.folder, names[-1]
        if member.kind == FILE:
            self._write(member, name, limits)
        elif member.kind == LINK:
            if b"\0" in member.target or not stays_below(member.target, len(names) - 1):
                raise Refused(409, "link", "This link leads out of the archive. It was left out.")
            at.symlink(member.target, folder, name)
            _set_time(folder, name, member.time)
        elif member.kind == HARD_LINK:
            self._link(names_of(member.target), name)
        else:
            raise Refused(409, "special", "This is no file, folder or link. It was left out.")

    def _write(self, member: Member, name: bytes, limits: Limits) -> None:
        mode = 0o666 if member.mode is None else member.mode & PERMISSIONS
        folder = self._descent.folder
        written = at.create(folder, name, self._given.mode_of(mode, is_folder=False))
        try:
            for piece in member.data():
                limits.add_bytes(len(piece))
                if member.is_sparse and not piece.strip(b"\0"):
                    os.lseek(written, len(piece), os.SEEK_CUR)
                else:
                    write_all(written, piece)
                self._operation.add_bytes(len(piece))
            os.ftruncate(written, os.lseek(written, 0, os.SEEK_CUR))
            self._given.give_entries(OpenFile(written, (), os.fstat(written)))
            if member.time is not None:
                at.set_times(written, member.time, member.time)
        except BaseException:
            at.unlink(folder, name)
            raise
        finally:
            os.close(written)

    def _link(self, target: Names, name: bytes) -> None:
        """Create a hard link to a file that was unpacked before; raises Refused."""
        try:
            with self._folder_of(target) as folder:
                if not stat.S_ISREG(at.status(folder, target[-1]).st_mode):
                    raise FileNotFoundError
                at.link(folder, target[-1], self._descent.folder, name)
        except (FileNotFoundError, NotADirectoryError, IndexError):
            detail = "It is a hard link to what is not in the archive. It was left out."
            raise Refused(409, "link", detail) from None

    @contextlib.contextmanager
    def _folder_of(self, names: Names) -> Iterator[int]:
        descent = Descent(self.top)
        try:
            for name in names[:-1]:
                descent.down(name)
            yield descent.folder
        finally:
            descent.close()

    def finish(self) -> None:
        """Set the permissions and times of all folders; raises Refused, OSError, Cancelled."""
        with Tree(self._parent) as tree:
            for step in tree.steps(self._part):
                self._operation.check()
                if step.kind == LEAVE:
                    mode, time = self._modes.get(tree.below(step), (None, None))
                    mode = 0o777 if mode is None else mode & PERMISSIONS
                    mode = self._given.mode_of(mode, is_folder=True)
                    keep_mode(tree.inside, mode, self._given)
                    self._given.give_entries(OpenFile(tree.inside, (), step.status))
                    if time is not None:
                        at.set_times(tree.inside, time, time)


def _set_time(folder: int, name: bytes, time: int | None) -> None:
    """Set the time of a link, if the file system can."""
    with contextlib.suppress(OSError), at.opened(folder, name, at.PATH) as opened:
        if time is not None and stat.S_ISLNK(os.fstat(opened).st_mode):
            at.set_times(opened, time, time)
