"""Lines of CSV files without formulas that spreadsheets would evaluate."""

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
    """Escape a cell that spreadsheets would evaluate as a formula."""
    return f"'{text}" if text.lstrip().startswith(_FORMULA) or text.startswith(_FORMULA) else text
