"""Findings of `slipway check`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """The result of one check, with advice if it failed."""

    ok: bool
    text: str
    warning: bool = False
    """Whether the setting is valid only on some sites; not a failure."""

    @property
    def word(self) -> str:
        """The first word of its line."""
        if not self.ok:
            return "MISSING"
        return "WARNING" if self.warning else "ok"


def warn(text: str) -> Finding:
    """Create a finding about a setting that is valid only on some sites."""
    return Finding(True, text, warning=True)
