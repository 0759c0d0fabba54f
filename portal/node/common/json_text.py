"""Strict parsing of JSON from users and other systems.

Parsing ends with a value or with NotJson for any input: deep nesting, NaN and Infinity, numbers of
a million digits, lone surrogates and duplicate keys. This file is also installed on nodes.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter

MAX_DEPTH = 64
"""Nesting of lists and objects; documents that the portal reads are far shallower."""
_FARTHEST: int = 10**30
"""Replaces integers with more digits; outside every permitted range."""


class NotJson(ValueError):
    """The text is not acceptable JSON; the error's text says why."""


def decode_json(raw: bytes | str) -> object:
    """Decode JSON in UTF-8; raises NotJson."""
    try:
        text = raw.decode() if isinstance(raw, bytes) else raw
        _refuse_deep(text)
        data = json.loads(
            text,
            object_pairs_hook=_no_duplicates,
            parse_constant=_no_constant,
            parse_int=whole_number,
            parse_float=_finite,
        )
        if re.search(r"\\u[dD]", text):
            # JSON can express lone surrogates, which cannot be written as UTF-8.
            json.dumps(data, ensure_ascii=False).encode()
    except NotJson:
        raise
    except json.JSONDecodeError as error:
        raise NotJson(f"is not valid JSON: line {error.lineno}, column {error.colno}") from None
    except UnicodeError:
        raise NotJson("has characters that are not valid UTF-8") from None
    return data


def decode_object(raw: bytes | str) -> dict[str, object]:
    """Decode a JSON object in UTF-8; raises NotJson."""
    data = decode_json(raw)
    if not isinstance(data, dict):
        raise NotJson("is not a JSON object")
    return data


def _refuse_deep(text: str) -> None:
    """Refuse deep nesting before parsing: the parser recurses as deep as the text does."""
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    outside = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])  # of strings
    depth = 0
    for bracket in re.finditer(r"[\[{\]}]", outside):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > MAX_DEPTH:
            raise NotJson("is nested too deeply")


def whole_number(digits: str) -> int:
    """Parse an integer of any length; int() would take minutes for a million digits."""
    if len(digits) > len(str(_FARTHEST)):
        return -_FARTHEST if digits.startswith("-") else _FARTHEST
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise NotJson("has a number that is too large")
    return number


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    # Two parsers of the same text could pick different values of a duplicate key.
    data = dict(pairs)
    if len(data) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        duplicate = next(key for key, count in counts.items() if count > 1)
        shown = duplicate if len(duplicate) <= 40 else f"{duplicate[:39]}…"
        raise NotJson(f"has the key {json.dumps(shown)} twice")
    return data


def _no_constant(name: str) -> float:
    raise NotJson(f"is not valid JSON: {name} is not a JSON number")
