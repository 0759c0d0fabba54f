"""Paths of the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
RECORDED = ROOT / "tests" / "recorded"
RELEASE_0_2_0 = RECORDED / "release_0_2_0"
"""Dumps of databases of that release."""
