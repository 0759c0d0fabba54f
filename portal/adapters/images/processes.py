"""Runs programs of builds, showing their output while they run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from portal.core.images.names import ImageError

SHOWN = 15
"""Lines of a failed program's output in the error message."""
_NOISE = re.compile(r" warn rootless\{|^WARNING: The --fix-perms option modifies")
"""Warnings that a user cannot record the owner of a file, one per file, and about --fix-perms."""
_PATIENCE = 20.0
"""Seconds that an interrupted program has to clean up."""


def run_shown(
    command: Sequence[str],
    note: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    ends: Sequence[signal.Signals] = (signal.SIGTERM, signal.SIGKILL),
) -> tuple[int, list[str]]:
    """Run a program and report each line of its output; returns its status and the last lines.

    `ends`: the signals that the program gets in turn if this function is interrupted. Raises
    ImageError if the program cannot be started.
    """
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, **(environment or {})},
            cwd=folder,
            start_new_session=True,
        )
    except OSError as error:
        raise ImageError(f"{command[0]}: {error.strerror}") from error
    last: deque[str] = deque(maxlen=SHOWN)
    try:
        for line in process.stdout or ():
            if (text := line.rstrip()) and not _NOISE.search(text):
                last.append(text)
                note(text)
        return process.wait(), list(last)
    except BaseException:
        _stop(process, ends)
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()


def _stop(process: subprocess.Popen[str], ends: Sequence[signal.Signals]) -> None:
    """End a program's process group, so that an interrupted build leaves no process."""
    for number in ends:
        try:
            os.killpg(process.pid, number)
            process.wait(_PATIENCE)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def run_checked(
    command: Sequence[str], note: Callable[[str], None], title: str, folder: Path | None = None
) -> None:
    """Run a program; raises ImageError with its last lines if it fails."""
    status, last = run_shown(command, note, folder=folder)
    if status:
        raise ImageError(failure(title, status, last))


def failure(title: str, status: int, last: Sequence[str]) -> str:
    """A message with a program's last lines."""
    lines = "".join(f"\n    {line}" for line in last)
    return f"{title} failed with status {status}:{lines}"


def as_mapped_root(command: Sequence[str], ids: bool, *, always: bool = False) -> list[str]:
    """A command that may change all files of a folder that was built with --fakeroot.

    `ids`: whether the user has ids in /etc/subuid. Root needs no mapping, except if `always`: the
    command has to see the owners of the image's files.
    """
    if os.geteuid() == 0 and not (always and ids):
        return list(command)
    mapped = ["--map-auto"] if ids else []
    return ["unshare", *mapped, "--map-root-user", "--mount", "--fork", "--", *command]
