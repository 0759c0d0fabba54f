"""Counts the files in the session's own home, which are deleted at its end."""

from __future__ import annotations

import os
import stat
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST_FILES = 10_000
MOST_FOLDERS = 2_000
MOST_SECONDS = 5.0
PAUSE = 60.0
# The home may be on a slow network: counting takes at most this part of the time.
SHARE = 0.02
# Created by programs, which create them again.
DERIVED = frozenset({"__pycache__", "node_modules"})


class HomeCounter:
    """Counts in a separate thread, so that a slow file system delays no heartbeat."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._latest: dict[str, object] = {}

    def start(self) -> None:
        """Begin counting."""
        threading.Thread(target=self._run, name="home", daemon=True).start()

    def latest(self) -> dict[str, object]:
        """home_files and home_bytes as last counted; {} before that, or if that failed."""
        return self._latest

    def _run(self) -> None:
        while True:
            began = time.monotonic()
            self._latest = count(self._home, mount_points(), time.monotonic)
            took = time.monotonic() - began
            time.sleep(max(PAUSE, took / SHARE))


def count(home: str, mounts: frozenset[str], clock: Callable[[], float]) -> dict[str, object]:
    """Return home_files and home_bytes of the files that a person would miss.

    Hidden and derived ones do not count, nor do those below mounts; links are not followed. Stops
    at MOST_FILES, so that more are reported as that number; {} if it takes too long.
    """
    files = size = 0
    waiting, visited, deadline = [home], 0, clock() + MOST_SECONDS
    while waiting:
        visited += 1
        if visited > MOST_FOLDERS:
            return {}
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if clock() > deadline:
                        return {}
                    if entry.name.startswith(".") or entry.path in mounts:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        waiting += [entry.path] if entry.name not in DERIVED else []
                        continue
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISREG(status.st_mode):
                        files, size = files + 1, size + status.st_size
                        if files >= MOST_FILES:
                            return {"home_files": files, "home_bytes": size}
        except OSError:
            continue
    return {"home_files": files, "home_bytes": size}


def mount_points(file: str = "/proc/self/mountinfo") -> frozenset[str]:
    """Return all mount points."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as lines:
            return frozenset(_unescaped(line.split(" ", 5)[4]) for line in lines)
    except (OSError, IndexError):
        return frozenset()


def _unescaped(path: str) -> str:
    # The kernel writes these four characters in octal.
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path
