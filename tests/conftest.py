"""What many tests start from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis

from portal.config import Settings
from tests.fakes import World, make_world

# Developers search with new random cases each time; what lands is judged by the same cases always.
hypothesis.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    hypothesis.load_profile("ci")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A portal whose Slurm, HAProxy and runners are stand-ins; everything else is real."""
    (tmp_path / "secret_key").write_text("0" * 64)
    settings = Settings.model_validate(
        {
            "state": {"directory": str(tmp_path), "run": str(tmp_path)},
            "slurm": {"admins": ["admin"]},
        }
    )
    return make_world(settings)
