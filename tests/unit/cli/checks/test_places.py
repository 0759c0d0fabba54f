"""The toolkit's release, as images/toolkit/build.sh marks it; templates."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import portal.node.runner
from portal.cli.checks.places import MARK, check_templates, check_toolkit, runner_digest
from portal.config import Settings
from tests.support.paths import ROOT


def test_the_digest_is_what_the_build_calculates(tmp_path: Path) -> None:
    build = (ROOT / "images" / "toolkit" / "build.sh").read_text()
    (line,) = re.findall(r"^digest=\$\((.*)\)$", build, re.MULTILINE)
    (tmp_path / "runner").symlink_to(Path(portal.node.runner.__file__).parent)
    done = subprocess.run(
        ["bash", "-c", f"set -e; {line}"],
        env={"tree": str(tmp_path), "LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == runner_digest()


@pytest.mark.parametrize(
    ("content", "ok", "words"),
    [
        (b"hsqs" + b"\0" * 100 + MARK + runner_digest().encode() + b"\n", True, "of this release"),
        (b"hsqs" + b"\0" * 100 + MARK + b"0" * 64 + b"\n", False, "is of another release"),
        (b"hsqs" + b"\0" * 100, True, "does not say of which release"),
        (b"SIF" + b"\0" * 100, False, "is not a squashfs image"),
        (b"", False, "is not a squashfs image"),
    ],
)
def test_toolkits(tmp_path: Path, content: bytes, ok: bool, words: str) -> None:
    file = tmp_path / "toolkit.sqsh"
    file.write_bytes(content)
    (one,) = check_toolkit(file)
    assert one.ok is ok
    assert words in one.text


def test_templates_of_another_release(tmp_path: Path) -> None:
    (tmp_path / "html").mkdir()
    settings = Settings.model_validate({"sessions": {"templates": str(tmp_path)}})
    (one,) = check_templates(settings)
    assert "lacks job/session.sh.j2" in one.text
    assert list(check_templates(Settings())) == []
