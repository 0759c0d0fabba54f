"""Reads what people write into fields: numbers become numbers, and what is none stays text.

Text stays so that the one place that checks requests says what is wrong, in the words that the API
has for the same thing.
"""

from __future__ import annotations

import re

from portal.web.http.body import whole_number


def trim(text: str) -> str:
    """A field without the blanks around it, which people paste and do not see.

    Only blanks: what else is there, such as line breaks, was sent on purpose and is looked at.
    """
    return text.strip(" \t")


def whole(text: str) -> int | str:
    """A whole number of either sign and any length."""
    return whole_number(text) if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) else text


def decimal(text: str) -> float | str:
    """An amount that may have a fraction, and either sign."""
    found = re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text, re.ASCII) and len(text) <= 300
    return float(text) if found else text
