"""The functions of libcuda that the shim wraps."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.unit.gres.conftest import make


def wrapped_functions(folder: Path) -> set[str]:
    """Builds the shim into `folder`; its objects define them, and the rest are trampolines."""
    make("gres/shim", folder)
    objects = [str(file) for file in (folder / "cuda").glob("*.o")]
    command = ["nm", "--defined-only", "--extern-only", *objects]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return set(re.findall(r" T (cu[A-Z]\w+)$", listed, re.MULTILINE))
