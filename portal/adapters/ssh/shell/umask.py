"""The umask of a user's login shell, for commands started from a non-login shell."""

from __future__ import annotations

SECONDS = 3
"""Seconds that the login shell's start-up files may take."""


def ask_step(file: str) -> str:
    """A shell line that queries the login shell in the background; its answer goes to a file.

    Every shell understands the query; shells without -l have no login files. It is sent three
    times, since a start-up file may read a line of its input. The answer is not a pipe, which
    background processes of start-up files would keep open.
    """
    ask = f'exec timeout --kill-after=1 {SECONDS} "$SHELL" -l > {file} 2>/dev/null'
    lines = "; ".join(["echo exec cat /proc/self/status"] * 3)
    return f'{{ {lines}; }} | (umask "$umask"; {ask}) & asked=$!'


def take_step(file: str) -> str:
    """Shell lines that wait for the answer and set that umask; without an answer, $umask."""
    extract = f"sed -n 's/^Umask:[[:blank:]]*\\([0-7]\\{{1,4\\}}\\)$/\\1/p' {file} | tail -n 1"
    return f'wait $asked; answer=$({extract}); rm -f {file}\numask "${{answer:-$umask}}"'
