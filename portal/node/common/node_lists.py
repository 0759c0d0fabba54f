"""Lists of nodes as Slurm shortens them: "n[01-03,7],r[1-2]n[1-4]"."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_NODES = 100_000
"""More than the largest cluster has; bounds the memory for a list."""

_PIECE = re.compile(r"[\w.-]+|\[[0-9,-]+\]")
_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def expand_nodes(text: str) -> tuple[str, ...]:
    """The nodes of a list such as "n[01-03,7],login1" or "r[1-2]n[01-03]"; () for none.

    Raises ValueError for anything else, and for more than MOST_NODES.
    """
    if text in ("", "(null)", "None assigned", "n/a"):
        return ()
    nodes: list[str] = []
    for part in re.split(r",(?![^\[]*\])", text):
        pieces = _PIECE.findall(part)
        if not pieces or "".join(pieces) != part or part.startswith("["):
            raise _unreadable(text)
        nodes.extend(_expand(pieces, text, MOST_NODES - len(nodes)))
    return tuple(nodes)


def _expand(pieces: list[str], text: str, most: int) -> list[str]:
    """All names that the pieces form, in Slurm's order: the last bracket counts fastest."""
    names = [""]
    for piece in pieces:
        ends = list(_numbers(piece[1:-1], text, most)) if piece.startswith("[") else [piece]
        if len(names) * len(ends) > most:
            raise _unreadable(text)
        names = [name + end for name in names for end in ends]
    return names


def _numbers(ranges: str, text: str, most: int) -> Iterator[str]:
    for item in ranges.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise _unreadable(text)
        first, last = match[1], int(match[2] or match[1])
        if not 0 <= last - int(first) < most:
            raise _unreadable(text)
        for number in range(int(first), last + 1):
            yield f"{number:0{len(first)}}"


def _unreadable(text: str) -> ValueError:
    return ValueError(f"unreadable node list {text[:200]!r}")
