"""Session names: validation, and generated names."""

from __future__ import annotations

import unicodedata

MIN_NAME, MAX_NAME = 4, 64
"""Characters of a name."""

_RULE = f"use {MIN_NAME} to {MAX_NAME} letters and digits of any script, without spaces"
_MAX_MARKS = 3
"""Combining marks per letter: enough for every living script, too few to deface a page."""

# Letters or marks to Unicode, but invisible: two names could look identical.
_INVISIBLE = frozenset(
    map(
        chr,
        (
            0x034F,
            0x115F,
            0x1160,
            0x17B4,
            0x17B5,
            0x3164,
            0xFFA0,
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)

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


def session_name(text: str) -> str:
    """The name as stored, in Unicode's NFC; raises ValueError with the rule.

    Names only distinguish a user's sessions: jobs, files and URLs use ids. So letters that look
    alike are harmless; invisible characters are refused.
    """
    # No letter takes more than a few characters, and normalising long texts is slow.
    name = unicodedata.normalize("NFC", text) if len(text) <= 4 * MAX_NAME else ""
    if not MIN_NAME <= len(name) <= MAX_NAME or not _is_of_letters(name):
        raise ValueError(_RULE)
    return name


def _is_of_letters(name: str) -> bool:
    marks = _MAX_MARKS  # the first character has no letter to combine with
    for character in name:
        kind = unicodedata.category(character)
        if kind in ("Mn", "Mc"):
            marks += 1
        elif kind == "Nd" or kind[0] == "L":
            marks = 0
        else:
            return False
        if marks > _MAX_MARKS or character in _INVISIBLE:
            return False
    return True


def readable_name(number: int) -> str:
    """A generated name of two words and two digits; `number` is random."""
    return f"{_words(number)}{number // 1024 % 100:02}"


def names_for(name: str | None, count: int, number: int) -> list[str]:
    """Names for the sessions of one launch; several are numbered from 1."""
    if count == 1:
        return [name or readable_name(number)]
    stem = name or _words(number)
    return [f"{stem}{place}" for place in range(1, count + 1)]


def _words(number: int) -> str:
    return _FIRST[number % 32] + _SECOND[number // 32 % 32]
