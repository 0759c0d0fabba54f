"""A user's own image file: opened once, so that the checked file is the one that runs."""

from __future__ import annotations

import errno
import os
import stat

from portal.node.batch.image import ImageError, sif, site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from portal.node.batch.image.site import SiteFile


def open_file(folder: str, inside: str, max_mb: int, refused: Sequence[SiteFile] = ()) -> int:
    """Open and check the file `inside` a folder, none of the `refused`; raises ImageError.

    Links may lead anywhere inside the folder, never out of it. The open file is checked, not its
    name, which another process may exchange meanwhile.
    """
    name = f"{os.path.basename(folder.rstrip('/'))}/{inside}"
    path = os.path.join(folder, inside)
    try:
        base = os.path.realpath(folder)
        # Not blocking: a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError as error:
        raise ImageError(_words(name, error)) from None
    try:
        real = os.readlink(f"/proc/self/fd/{descriptor}")
        if not real.startswith(base.rstrip("/") + "/"):
            raise ImageError(
                f"{name} is a link that leads out of its folder. Copy the image into the folder"
            )
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ImageError(f"{name} is not a file")
        sif.check(descriptor, name, max_mb)
        site.check(descriptor, name, refused)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _words(name: str, error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return f"there is no file {name}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"you may not read {name}"
    if error.errno == errno.ELOOP:
        return f"{name} is a link that leads to itself"
    return f"{name} cannot be opened: {error.strerror}"
