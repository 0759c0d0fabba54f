"""The completion for bash, and the manual page."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from portal.node.batch.main import USAGE
from portal.node.batch.options import SLIPWAY_WITH_VALUE, SLIPWAY_WITHOUT_VALUE
from tests.support.paths import ROOT
from tests.unit.node.batch.conftest import site

DOC = ROOT / "portal" / "node" / "batch" / "doc"
COMPLETE = """
compopt() { :; }
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_slipway slipway "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(settings: Path, *words: str) -> list[str]:
    """What bash proposes for the last word; it makes words of their own of "="."""
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", DOC / "completion.bash", *words],
        env={"SLIPWAY_BATCH_SETTINGS": str(settings), "PATH": "/usr/bin:/bin"},
        cwd=settings.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "batch.json"
    file.write_text(json.dumps(site(), indent=2))  # as the portal writes it
    return file


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        (["sb"], ["sbatch"]),
        (["sbatch", "--g"], ["--gpu-kind="]),
        (["sbatch", "--image", "=", "py"], ["python/3.13", "python/3.11"]),
        (["srun", "--image", "debian"], ["debian/12"]),
        (["sbatch", "--image", "="], ["python/3.13", "python/3.11", "r/4", "debian/12"]),
        (["sbatch", "bat"], ["batch.json"]),
    ],
)
def test_words_are_completed(words: list[str], proposed: list[str], settings: Path) -> None:
    assert completed(settings, "slipway", *words) == proposed


def test_without_settings_nothing_is_printed(tmp_path: Path) -> None:
    assert completed(tmp_path / "none.json", "slipway", "sbatch", "--image", "=", "py") == []


@pytest.mark.parametrize("option", sorted(SLIPWAY_WITH_VALUE | SLIPWAY_WITHOUT_VALUE))
def test_every_option_is_in_the_manual_the_help_and_the_completion(option: str) -> None:
    page = (DOC / "slipway.1").read_text().replace("\\-", "-")
    assert re.search(rf"^\.BR? --{option}\b", page, re.MULTILINE)
    assert f"--{option}" in USAGE
    assert f"--{option}" in (DOC / "completion.bash").read_text()
