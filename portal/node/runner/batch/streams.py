"""Standard streams that the caller has closed."""

from __future__ import annotations

import os


def reserve_streams() -> None:
    """Have no file of this program become one of them; what it becomes finds them closed."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # the lowest number that is free
