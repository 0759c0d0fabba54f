"""Only tested packages are installed: each has a pinned version and the hashes of its files."""

from __future__ import annotations

import re

import pytest

from tests.support.paths import ROOT

INSTALLED = sorted(
    file.relative_to(ROOT).as_posix()
    for pattern in ("", "images/*/*/", "cluster/hub/", "cluster/clients/")
    for file in ROOT.glob(f"{pattern}requirements*.txt")
)


@pytest.mark.parametrize("name", INSTALLED)
def test_every_package_has_a_version_and_hashes(name: str) -> None:
    text = re.sub(r"^\s*#.*$", "", (ROOT / name).read_text(), flags=re.MULTILINE)
    entries = [line.strip() for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    # A framework's variant for CPUs is the one package in which it differs; VS Code needs Node.js.
    alone = name.endswith("-cpu.txt") or "/vscode/" in name
    assert len(entries) == 1 if alone else len(entries) > 5
    for entry in entries:
        assert re.match(r"[A-Za-z0-9._\[\],-]+==[^ ;]+", entry), entry[:80]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry[:80]


SCRIPTS = ["tests/run.sh", "cluster/Containerfile", "cluster/clients/build.sh"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_hashes_are_required(script: str) -> None:
    text = (ROOT / script).read_text().replace("\\\n", " ")
    found = [line for line in text.splitlines() if re.search(r"-r(equirement)?[ =]", line)]
    assert found
    assert "--require-hashes" in text
