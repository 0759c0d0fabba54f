"""Folders for builds."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from portal.adapters.images.processes import as_mapped_root

PREFIX = "slipway-image."
_LOCK = ".lock"


class LocalWorkspaces:
    """Folders in $TMPDIR or /var/tmp, which have room for a whole image."""

    def __init__(self, ids: bool, parent: Path | None = None) -> None:
        """`ids`: whether files may have owners from /etc/subuid."""
        self._ids = ids
        self._parent = parent or Path(os.environ.get("TMPDIR", "/var/tmp"))  # noqa: S108

    @contextmanager
    def __call__(self) -> Iterator[Path]:
        self._clean()
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._parent))
        folder.chmod(0o755)  # the container's other accounts read definitions and bases
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield folder
        finally:
            self._delete(folder)
            os.close(descriptor)

    def _clean(self) -> None:
        """Delete the folders of crashed builds, whose locks are free."""
        for folder in self._parent.glob(f"{PREFIX}*"):
            try:
                if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
                    continue
                descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._delete(folder)
            except OSError:
                continue
            finally:
                os.close(descriptor)

    def _delete(self, folder: Path) -> None:
        command = as_mapped_root(["rm", "-rf", "--one-file-system", str(folder)], self._ids)
        subprocess.run(command, capture_output=True, check=False)
