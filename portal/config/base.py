"""What all sections of the settings have in common."""

from __future__ import annotations

from pydantic import ConfigDict

FROZEN = ConfigDict(frozen=True, extra="forbid")
"""Settings never change while running, and a key that does not exist is an error."""
