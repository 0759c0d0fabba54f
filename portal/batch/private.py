"""A folder that nobody else can enter, for as long as it is needed."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST = 80
"""Characters of a path that leaves room for a socket's name (108 in all)."""


@contextlib.contextmanager
def private_folder() -> Iterator[str]:
    """A new folder in $TMPDIR, or in /tmp if that is unusable or its path too long for sockets."""
    places = [os.environ.get("TMPDIR", ""), "/tmp"]  # noqa: S108
    folder = ""
    for place in places:
        if os.path.isabs(place) and len(os.fsencode(place)) < LONGEST and os.path.isdir(place):
            with contextlib.suppress(OSError):
                folder = tempfile.mkdtemp(prefix="slipway-", dir=place)
                break
    if not folder:
        raise OSError(f"no folder for temporary files: {' and '.join(filter(None, places))}")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
