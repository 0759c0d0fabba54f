"""What `slipway check` reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One check, and what to do if it failed."""

    ok: bool
    text: str
