"""Fixtures of the commands' tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.site_config import write_config


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A site's settings in a folder of the test."""
    return write_config(tmp_path)
