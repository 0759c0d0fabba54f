"""Standard streams that the caller has closed."""

from __future__ import annotations

import os


def reserve_streams() -> None:
    """Fill these descriptors until exec, so that no file of this program gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)  # the lowest number that is free
