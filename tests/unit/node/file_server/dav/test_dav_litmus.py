"""litmus, the public test suite of WebDAV servers: class 1, class 2 and what HTTP/1.1 demands."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

SUITES = ("basic", "copymove", "props", "locks", "http")
DIFFERENCES: dict[str, str] = {}
"""Expected failures, `suite test`, with the reason."""
_RESULT = re.compile(r"\d+\. (\w+)\.* (\S+)")


@pytest.mark.parametrize("suite", SUITES)
def test_litmus_passes(proxy: str, home: Path, tmp_path: Path, suite: str) -> None:
    (home / "folder").mkdir()
    done = subprocess.run(
        ["litmus", "--keep-going", f"{proxy}/data/dav/home/folder"],
        env={**os.environ, "TESTS": suite},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,  # for debug.log
    )
    output = done.stdout
    results = _RESULT.findall(output)  # a suite asks some questions several times
    failed = {f"{suite} {name}" for name, result in results if result != "pass"}
    assert failed == {name for name in DIFFERENCES if name.startswith(f"{suite} ")}, output
    assert "WARNING" not in output, output
    assert re.findall(r"of (\d+) tests run", output) == [str(len(results))], output
