"""Folders for state that outlives the server's process."""

from __future__ import annotations

import contextlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def private_folder() -> str:
    """A folder on this host that only this user can enter; raises OSError."""
    # Another user may have the name in /tmp; the last one may be on a file system that is away.
    last = os.path.join(os.path.expanduser("~"), ".slipway", "run")
    for folder in (f"/run/user/{os.getuid()}", f"/tmp/slipway-{os.getuid()}", last):  # noqa: S108
        with contextlib.suppress(OSError):
            make_private(folder)
        with contextlib.suppress(OSError):
            status = os.lstat(folder)
            if status.st_uid == os.getuid() and status.st_mode & 0o170077 == 0o040000:
                return folder
    raise OSError(f"there is no private folder for it; who owns /tmp/slipway-{os.getuid()}?")


def state_folders(roots: Mapping[str, str], kind: str) -> list[str]:
    """Folders for records of a kind, the preferred one first.

    The home directory, which all hosts share; then this host, for when that is full or away.
    """
    home = roots.get("home") or os.path.expanduser("~")
    folders = [os.path.join(home, ".slipway", "files", kind)]
    with contextlib.suppress(OSError):
        folders.append(os.path.join(private_folder(), "files", kind))
    return folders


def make_private(folder: str) -> None:
    """Create a folder and those above it, each of mode 0700; raises OSError.

    os.makedirs() gives that mode to the last one alone.
    """
    above = os.path.dirname(folder)
    if above != folder and not os.path.isdir(above):
        make_private(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
