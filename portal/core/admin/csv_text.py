"""Lines of CSV files that spreadsheets open without calculating anything."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_line(cells: Iterable[str]) -> str:
    """One line; cells that begin like a formula get an apostrophe in front."""
    line = io.StringIO()
    csv.writer(line).writerow(map(harmless, cells))
    return line.getvalue()


def harmless(text: str) -> str:
    """A cell that no spreadsheet calculates."""
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else text
