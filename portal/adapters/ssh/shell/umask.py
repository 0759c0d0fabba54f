"""The umask of a user's login shell, for what is started from a shell that is none."""

from __future__ import annotations

SECONDS = 3
"""How long the login shell's start-up files may take."""


def ask_step(file: str) -> str:
    """A line of shell that asks the login shell in the background; the answer goes to a file.

    The question is one that every shell understands; those that know no -l have no login files. It
    is asked three times, since a start-up file may read a line of its input.
    What start-up files leave in the background would keep a pipe open, but not a file.
    """
    ask = f'exec timeout --kill-after=1 {SECONDS} "$SHELL" -l > {file} 2>/dev/null'
    lines = "; ".join(["echo exec cat /proc/self/status"] * 3)
    return f'{{ {lines}; }} | (umask "$umask"; {ask}) & asked=$!'


def take_step(file: str) -> str:
    """Lines of shell that wait for the answer and take that umask; without one, $umask."""
    found = f"sed -n 's/^Umask:[[:blank:]]*\\([0-7]\\{{1,4\\}}\\)$/\\1/p' {file} | tail -n 1"
    return f'wait $asked; answer=$({found}); rm -f {file}\numask "${{answer:-$umask}}"'
