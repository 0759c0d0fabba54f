"""Names as users can give them to processes, jobs, files and cgroups."""

from __future__ import annotations

import random

SEPARATORS = [c.encode() for c in "\n\x0b\x0c\r\x1c\x1d\x1e\x85\u2028\u2029"]
"""What str.splitlines divides at."""
LINES = [b"ShdPnd: zz", b"ShdPnd: 100", b"ShdPnd:", b"Uid: x", b"0::/slurm.x/job_9", b"/nvidia-uvm"]
"""Pieces of what root's programs read."""


def names(longest: int, number: int = 10_000) -> list[bytes]:
    """Each byte alone, each separator with each line behind it, and generated ones."""
    chance = random.Random(31)
    found = [bytes([byte]) for byte in range(1, 256)]
    found += [separator + line for separator in SEPARATORS for line in LINES]
    pieces = [*SEPARATORS, *LINES, *(bytes([byte]) for byte in range(1, 256))]
    while len(found) < number:
        found.append(b"".join(chance.choices(pieces, k=chance.randint(1, 8))))
    return [name[:longest] for name in found]
