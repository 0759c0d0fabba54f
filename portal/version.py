"""The version of the running Slipway."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

REVISION = Path(__file__).parent / "data" / "revision"
"""The commit that a wheel was built from; setup.py writes it, so a checkout has none."""


@cache
def release() -> str:
    """The version of the package, such as "0.2.0"; "unknown" if it is not installed."""
    try:
        return version("slipway")
    except PackageNotFoundError:
        return "unknown"


def described(file: Path = REVISION) -> str:
    """The version, with the commit if built from a checkout: "0.2.0 (1a2b3c4d5e6f)"."""
    try:
        commit = file.read_text(encoding="ascii").strip()
    except OSError:
        return release()
    return f"{release()} ({commit})"
