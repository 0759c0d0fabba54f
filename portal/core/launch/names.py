"""Session names: validation, generated names, and names that differ from those in use."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence

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
    return [f"{stem}{index}" for index in range(1, count + 1)]


def _words(number: int) -> str:
    return _FIRST[number % 32] + _SECOND[number // 32 % 32]


_GENERATED = re.compile(f"({'|'.join(_FIRST)})({'|'.join(_SECOND)})[0-9]{{1,2}}")


def is_generated(name: str) -> bool:
    """Whether readable_name or names_for could have generated a name."""
    return _GENERATED.fullmatch(name) is not None


def name_from(title: str) -> str | None:
    """A session name from a title: "small python" becomes "smallPython"; None if none results."""
    words = [word for word in re.split(r"[\W_]+", title) if word]
    text = "".join([*words[:1], *(word[0].upper() + word[1:] for word in words[1:])])
    try:
        return session_name(text)
    except ValueError:
        return None


_COUNTED = re.compile(r"(.*?[^0-9])([0-9]{1,2})", re.DOTALL)


def distinct_names(names: Sequence[str], taken: Iterable[str]) -> list[str]:
    """Number the names that are taken or repeated: "train" becomes "train2", then "train3".

    Upper and lower case do not make a difference, since host names in SSH settings ignore them.
    """
    used = {name.casefold() for name in taken}
    distinct = []
    for name in names:
        free = next(other for other in _alternatives(name) if other.casefold() not in used)
        used.add(free.casefold())
        distinct.append(free)
    return distinct


def _alternatives(name: str) -> Iterable[str]:
    yield name
    # A short number at the end counts up; a longer one, such as a year, is part of the name.
    counted = _COUNTED.fullmatch(name)
    stem, digits = (counted[1], counted[2]) if counted else (name, "1")
    for number in itertools.count(int(digits) + 1):
        text = str(number).zfill(len(digits))
        yield stem[: MAX_NAME - len(text)] + text
