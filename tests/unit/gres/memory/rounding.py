"""The table of what the driver takes for linear memory: gres/shim/cuda_blocks.h."""

from __future__ import annotations

import re
from pathlib import Path

HEADER = Path(__file__).parents[4] / "gres" / "shim" / "cuda_blocks.h"


def table() -> dict[int, int]:
    """Bytes that many allocations of one size take, each, by the bytes asked for."""
    rows = re.findall(r"^ \* +(\d+) +(\d+)$", HEADER.read_text(), re.MULTILINE)
    return {int(asked): int(taken) for asked, taken in rows}
