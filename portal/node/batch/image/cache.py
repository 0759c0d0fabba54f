"""The cache of a user's pulled images, in the home directory: one file per digest, pulled once.

A lock file for each image is locked exclusively while it is pulled or deleted, and shared by all
that use it. Locks end with their process, so that a crash leaves none. Each download has a folder,
which the next pull deletes if the download was interrupted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile

from portal.node.file_server.state import make_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from portal.node.batch.image.registry import Resolved

SUFFIX = ".sif"
_PARTIAL = "pull-"


class Cache:
    """Images in one folder; `max_mb` bounds all of them together, except for those in use."""

    def __init__(self, folder: str, max_mb: int) -> None:
        self._folder = folder
        self._max = max_mb << 20

    def use(
        self, resolved: Resolved, pull: Callable[[str, str], None], wait: Callable[[], None]
    ) -> tuple[int, int]:
        """Return descriptors of an image and of its lock: it is in use until the latter is closed.

        `pull(FOLDER, FILE)` creates the file; FOLDER is for temporary files. `wait` is called
        before waiting for another process's pull. Raises OSError, and the errors of `pull`.
        """
        make_private(self._folder)
        key = resolved.digest.rpartition(":")[2]
        path = os.path.join(self._folder, key + SUFFIX)
        lock = self._open_lock(key)
        try:
            while True:
                fcntl.flock(lock, fcntl.LOCK_SH)
                with contextlib.suppress(FileNotFoundError):
                    image = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
                    os.utime(path)  # the order in which images are deleted
                    return image, lock
                self._pull(resolved, lock, path, pull, wait)
        except BaseException:
            os.close(lock)
            raise

    def _open_lock(self, key: str) -> int:
        # Never deleted: another process may have opened it and wait.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(os.path.join(self._folder, f".{key}.lock"), flags, 0o600)

    def _pull(
        self,
        resolved: Resolved,
        lock: int,
        path: str,
        pull: Callable[[str, str], None],
        wait: Callable[[], None],
    ) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(path):  # another process has pulled it meanwhile
            return
        self._delete_interrupted()
        self.prune(resolved.size)
        folder, claim = self._partial_folder()
        try:
            partial = os.path.join(folder, "image" + SUFFIX)
            pull(folder, partial)
            _flush(partial)
            os.chmod(partial, 0o400)
            os.rename(partial, path)
            self.prune()  # it may be larger than its download; its own lock protects it
        finally:
            _delete(folder)
            os.close(claim)

    def _partial_folder(self) -> tuple[str, int]:
        """Create a folder for a pull; returns it and a descriptor whose lock marks it as in use."""
        folder = tempfile.mkdtemp(prefix=_PARTIAL, dir=self._folder)
        claim = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(claim, fcntl.LOCK_SH)
        return folder, claim

    def _delete_interrupted(self) -> None:
        for entry in list(os.scandir(self._folder)):
            if not entry.name.startswith(_PARTIAL) or not entry.is_dir(follow_symlinks=False):
                continue
            with contextlib.suppress(OSError):
                claim = os.open(entry.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _delete(entry.path)
                finally:
                    os.close(claim)

    def prune(self, needed: int = 0) -> None:
        """Delete the least recently used images until `needed` bytes fit into the cache."""
        images = []
        for entry in os.scandir(self._folder):
            if entry.name.endswith(SUFFIX) and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                images.append((status.st_mtime, status.st_size, entry.name[: -len(SUFFIX)]))
        total = sum(size for _, size, _ in images) + needed
        for _, size, key in sorted(images):
            if total <= self._max:
                return
            total -= size if self._delete_unused(key) else 0

    def _delete_unused(self, key: str) -> bool:
        lock = self._open_lock(key)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(os.path.join(self._folder, key + SUFFIX))
        except OSError:  # in use, or deleted meanwhile
            return False
        finally:
            os.close(lock)
        return True


def _flush(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _delete(folder: str) -> None:
    """Delete a folder of unpacked layers, including folders without permissions."""
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                with contextlib.suppress(OSError):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
