"""The variable that Python sets for itself in the C locale (PEP 538), whatever its options are."""

from __future__ import annotations

import os

_SET = ("C.UTF-8", "C.utf8", "UTF-8")


def take_back() -> None:
    """Restore the caller's LC_CTYPE, for the programs that get this environment."""
    if os.environ.get("LC_CTYPE") not in _SET:
        return
    with open("/proc/self/environ", "rb") as stream:
        entries = stream.read().split(b"\0")
    values = [entry[9:] for entry in entries if entry.startswith(b"LC_CTYPE=")]
    if values:
        os.environb[b"LC_CTYPE"] = values[0]
    else:
        del os.environ["LC_CTYPE"]
