"""Slurm's own commands, which do all the work."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes 5 ms to import
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

MARK = b"# Slipway's command line"
"""In the first bytes of this program's file (build.sh)."""
NOT_FOUND = 127


def find(name: str, environment: Mapping[str, str]) -> str:
    """Return the path of a Slurm command in PATH, skipping copies of and links to this program."""
    for folder in environment.get("PATH", "/usr/bin:/bin").split(":"):
        path = os.path.join(folder or ".", name)
        if os.access(path, os.X_OK) and os.path.isfile(path) and not _is_own(path):
            return path
    return ""


def _is_own(path: str) -> bool:
    try:
        with open(path, "rb") as stream:
            return MARK in stream.read(200)
    except OSError:
        return False  # executable, but not readable


def execute(name: str, words: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    """Become Slurm's command."""
    path = find(name, environment)
    if not path:
        fail(name, f"Slurm's {name} was not found in PATH", NOT_FOUND)
    default_signals()
    try:
        os.execve(path, [name, *words], dict(environment))
    except OSError as error:
        fail(name, f"{path}: {error.strerror}", NOT_FOUND)


def default_signals() -> None:
    """Restore the signals that Python ignores, for programs such as `salloc sh -c 'yes | head'`."""
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)


def block_signals() -> set[int]:
    """Block all signals; returns the previous mask."""
    mask: set[int] = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    return mask


def reserve_streams() -> None:
    """Keep this program's files from becoming standard streams that its caller has closed.

    The programs that it starts find them closed, too.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # the lowest number that is free


def take_back_locale() -> None:
    """Restore the caller's LC_CTYPE, which Python sets in the C locale (PEP 538)."""
    if os.environ.get("LC_CTYPE") not in ("C.UTF-8", "C.utf8", "UTF-8"):
        return
    with open("/proc/self/environ", "rb") as stream:
        entries = stream.read().split(b"\0")
    values = [entry[9:] for entry in entries if entry.startswith(b"LC_CTYPE=")]
    if values:
        os.environb[b"LC_CTYPE"] = values[0]
    else:
        del os.environ["LC_CTYPE"]


def fail(name: str, text: str, code: int) -> NoReturn:
    """End with an error in Slurm's style."""
    print(f"{name}: error: {text}", file=sys.stderr)
    sys.exit(code)
