"""What pyproject.toml cannot say of a build: it needs browser libraries and records its commit.

The commit is that of the checkout, or SLIPWAY_REVISION where there is none, as in a container.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

ROOT = Path(__file__).parent
BUILT = ROOT / "portal" / "web" / "static" / "built"


class BuildPortal(build_py):
    """Refuse a build whose pages would have neither style nor scripts; `make assets` makes them."""

    def run(self) -> None:
        """Copy the files of the package, and write the commit beside them."""
        if self.editable_mode:
            super().run()
            return
        if not (BUILT / "manifest.json").is_file():
            raise SetupError(f"{BUILT} is not there: run `make assets` first")
        super().run()
        if commit := _commit():
            file = Path(self.build_lib, "portal", "data", "revision")
            file.write_text(commit + "\n", encoding="ascii")


def _commit() -> str:
    """The short hash of the commit, with "+" behind it if files differ; empty if there is none."""
    if stated := os.environ.get("SLIPWAY_REVISION"):
        return stated
    if not (ROOT / ".git").exists():
        return ""
    argv = ["git", "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


setup(cmdclass={"build_py": BuildPortal})
