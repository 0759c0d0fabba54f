"""The rule for names of storage folders that a session can mount in its home."""

from __future__ import annotations

import re

HOME = "home"
"""Stands for a user's whole home directory."""
LONGEST = 255
"""Bytes; the limit of Linux file systems."""

# Characters that end a line of a script or list: control characters and Unicode's separators.
_LINE_BREAKS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"
PATTERN = rf"[^./{_LINE_BREAKS}][^/{_LINE_BREAKS}]{{0,{LONGEST - 1}}}"
"""The rule as a regular expression, for schemas; it counts characters instead of bytes."""
_BREAK = re.compile(f"[{_LINE_BREAKS}]")


def name_problem(name: str) -> str:
    """The reason why a session cannot mount a storage folder of this name; "" if it can."""
    if not name:
        return "write the folder's name"
    if name == HOME:
        return f'"{HOME}" stands for your home directory; choose another name'
    if name.startswith("."):
        return "begin the name with something else than a dot, which hides a folder"
    if "/" in name:
        return 'use no "/" in the name'
    if _BREAK.search(name):
        return "use no line breaks, tabs or other control characters in the name"
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        return "write the name in UTF-8"
    if "\ufffd" in name:  # the replacement of bytes that are not UTF-8
        return "write the name in UTF-8"
    if length > LONGEST:
        return f"use up to {LONGEST} bytes; letters beyond ASCII have two to four"
    return ""
