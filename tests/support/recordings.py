"""Output of real Slurm versions (tests/recorded/<version>/)."""

from __future__ import annotations

import json

from tests.support.paths import RECORDED

VERSIONS = sorted(folder.name for folder in RECORDED.glob("[0-9]*.[0-9]*") if folder.is_dir())


def recorded(version: str, name: str) -> str:
    """A recorded output."""
    return (RECORDED / version / f"{name}.txt").read_text(encoding="utf-8")


def job_kinds(version: str) -> dict[str, str]:
    """The kind of each job (tests/record.py)."""
    found: dict[str, str] = json.loads((RECORDED / version / "jobs.json").read_text())
    return found
