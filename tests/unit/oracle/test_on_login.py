"""What the oracle runs on the login node."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

PROGRAM = ROOT / "tests" / "oracle" / "on_login.py"


def answer(action: str, item: object, home: Path) -> dict[str, Any]:
    """The answer for one item."""
    names = ("HOME", "USER", "LOGNAME", "SHELL")
    ended = subprocess.run(
        [sys.executable, PROGRAM, action],
        input=json.dumps([item]),
        env={"PATH": "/usr/bin:/bin", **dict.fromkeys(names, str(home))},
        capture_output=True,
        text=True,
        check=True,
    )
    answers: list[dict[str, Any]] = json.loads(ended.stdout)
    return answers[0]


def test_a_command_gets_its_folder_environment_input_and_mask(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("typed")
    # The shell itself would drop such a name.
    program = 'pwd; umask; cat; tr "\\0" "\\n" < /proc/$$/environ | grep -c "^my.var=1"; '
    program += 'echo "$1" >&2; exit 4'
    run = {
        "folder": str(tmp_path),
        "argv": ["sh", "-c", program, "sh", "a  b"],
        "environment": {"my.var": "1"},
        "stdin": str(tmp_path / "input"),
        "mask": "027",
    }
    assert answer("submit", run, tmp_path) == {
        "code": 4,
        "out": f"{tmp_path}\n0027\ntyped1\n",
        "err": "a  b\n",
    }


def test_files_are_listed_with_modes_contents_and_targets(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "é").write_bytes(b"\0\xff")
    (tmp_path / "a" / "é").chmod(0o640)
    (tmp_path / "link").symlink_to("a")
    found = answer("files", str(tmp_path), tmp_path)
    assert set(found) == {"a", "a/é", "link"}
    assert found["a/é"] == {
        "mode": "-rw-r-----",
        "content": base64.b64encode(b"\0\xff").decode(),
    }
    assert found["link"]["mode"].startswith("l")
    assert base64.b64decode(found["link"]["content"]) == b"a"
