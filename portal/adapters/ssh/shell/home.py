"""Shell steps that enter and write to a user's home, and the errors if that fails.

The reasons come from stat(1), mkdir(1) and cat(1), so scripts run these with LC_ALL=C.
"""

from __future__ import annotations

from portal.adapters.ssh.command import Completed
from portal.errors import HomeUnusable, visible

NO_HOME, NOT_WRITTEN = 88, 89
"""Exit codes of the steps below, which print the reason and then the home's path to stderr."""

_REPORT = """{ printf '%s\\n' "$HOME" >&2; exit """
ENTER = (
    f"""cd 2>/dev/null || {{ LC_ALL=C stat -- "$HOME/." >/dev/null; {_REPORT}{NO_HOME}; }}; }}"""
)
"""A shell line that changes to the home, or ends the script."""
OR_REPORT = f"|| {_REPORT}{NOT_WRITTEN}; }}"
"""Appended to a command that writes to the home: ends the script if the command fails."""

_FULL = ("No space left on device", "Disk quota exceeded")


def check_home(result: Completed) -> None:
    """Raise HomeUnusable if a step above has ended the script."""
    if result.code not in (NO_HOME, NOT_WRITTEN):
        return
    *errors, home = [visible(line)[:300] for line in result.stderr.splitlines()] or [""]
    text = errors[-1] if errors else "no reason was given"
    reason = text.rpartition(": ")[2]
    if result.code == NO_HOME and reason == "No such file or directory":
        raise HomeUnusable(f"Your home directory {home} does not exist on the login node.")
    if result.code == NO_HOME:
        raise HomeUnusable(
            f"Your home directory {home} cannot be entered on the login node: {reason}."
        )
    if reason in _FULL:
        raise HomeUnusable(f"Your home directory {home} is full: {reason}. Delete something first.")
    raise HomeUnusable(
        f"Your home directory {home} cannot be written to on the login node: {text}."
    )
