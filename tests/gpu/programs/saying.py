"""How these programs talk with the tests."""

from __future__ import annotations

import json
import sys


def say(**seen: object) -> None:
    """One line for the test."""
    print(json.dumps(seen), flush=True)


def pause() -> None:
    """Until the test says so."""
    sys.stdin.readline()
