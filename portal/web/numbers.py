"""Reads numbers from form fields; invalid ones stay text.

They stay text so that the request's validation reports them, in the API's words.
"""

from __future__ import annotations

import re

from portal.node.common.json_text import whole_number


def trim(text: str) -> str:
    """A field without surrounding blanks, which get pasted unnoticed.

    Only blanks and tabs: anything else, such as line breaks, was sent on purpose and is validated.
    """
    return text.strip(" \t")


def whole(text: str) -> int | str:
    """An integer of either sign and any length."""
    return whole_number(text) if re.fullmatch(r"[+-]?[0-9]+", text, re.ASCII) else text


def decimal(text: str) -> float | str:
    """A decimal number of either sign."""
    valid = re.fullmatch(r"[+-]?[0-9]+(\.[0-9]+)?", text, re.ASCII) and len(text) <= 300
    return float(text) if valid else text
