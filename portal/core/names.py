"""Readable names for sessions that were given none."""

from __future__ import annotations

_FIRST = (
    "amber brisk calm clear coral crisp eager early fair fresh gentle golden keen kind lively "
    "lucid mellow neat noble olive quick quiet rapid ready silver smart steady sunny swift "
    "tidy vivid warm"
).split()
_SECOND = (
    "badger beacon birch brook cedar comet condor coral crane delta ember falcon fern finch "
    "harbor heron lagoon larch lark maple meadow orbit otter petrel pine plover quartz raven "
    "reef sparrow tern willow"
).split()


def readable_name(number: int) -> str:
    """A name of two words and two digits; which one, the (random) number says."""
    return f"{_words(number)}{number // 1024 % 100:02}"


def names_for(name: str | None, count: int, number: int) -> list[str]:
    """Names for the sessions of one launch; those of several are numbered from 1."""
    if count == 1:
        return [name or readable_name(number)]
    stem = name or _words(number)
    return [f"{stem}{place}" for place in range(1, count + 1)]


def _words(number: int) -> str:
    return _FIRST[number % 32] + _SECOND[number // 32 % 32]
