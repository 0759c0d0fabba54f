"""Packages of the Python package index that tests run on the stand-in driver."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.unit.gres.conftest import ROOT

CACHE = ROOT / "build" / "test-packages"


def fetched(*requirements: str) -> Path:
    """A folder with these packages, without their dependencies; installed once, then kept."""
    folder = CACHE / "-".join(word.translate(str.maketrans("=.*", "__x")) for word in requirements)
    if folder.exists():
        return folder
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as work:
        words = ["--no-deps", "--only-binary=:all:", "--target", str(Path(work) / "all")]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", *words, *requirements],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (
            f"{' '.join(requirements)} cannot be had from the package index that pip is configured "
            f"for; this test needs it: {done.stderr}"
        )
        try:
            (Path(work) / "all").rename(folder)
        except OSError:  # another test was faster
            assert folder.exists()
    return folder
