"""What `slipway check` reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One check, and what to do if it failed."""

    ok: bool
    text: str
    warning: bool = False
    """Whether it is right on some sites only; no failure."""

    @property
    def word(self) -> str:
        """How its line begins."""
        if not self.ok:
            return "MISSING"
        return "WARNING" if self.warning else "ok"


def warn(text: str) -> Finding:
    """Something that is right on some sites only."""
    return Finding(True, text, warning=True)
