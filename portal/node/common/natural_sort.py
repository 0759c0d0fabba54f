"""The natural order of names: numbers by value, letters regardless of case."""

from __future__ import annotations

import re

_PARTS = re.compile(r"[0-9]+|[^0-9]+")


def natural_key(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key that orders "Lab 9" before "Lab 12", and numbers before letters."""
    return [
        (0, int(part), "") if part[0] in "0123456789" else (1, 0, part)
        for part in _PARTS.findall(name.casefold())
    ]
