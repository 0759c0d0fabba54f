"""What many tests start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.config import Settings
from tests.fakes import World, make_world


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
