"""The completion for bash and the manual page of `slipway images`."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from portal.cli.main import main
from tests.support.paths import ROOT

DOC = ROOT / "portal" / "cli" / "doc"
COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_slipway_admin slipway "${@: -1}" "${@: -2:1}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
ACTIONS = ("build", "list", "prune", "retire", "show", "test")


def completed(folder: Path, *words: str) -> list[str]:
    """What bash proposes for the last word."""
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", DOC / "completion.bash", "slipway", *words],
        env={"SLIPWAY_IMAGES": str(folder / "site"), "PATH": "/usr/bin:/bin"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a recipe, and the site's images."""
    for name in ("images/r/4.5/image.def", "site/cpp/14/image.sif", "site/cpp/10/image.sif"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("words", "proposed"),
    [
        (["im"], ["images"]),
        (["images", "re"], ["retire"]),
        (["images", "build", ""], ["r/4.5"]),
        (["images", "retire", "cpp/"], ["cpp/10", "cpp/14"]),
        (["images", "prune", "cpp/1", "r"], []),
        (["images", "prune", "-"], ["--dry-run"]),
        (["images", "show", "--p"], ["--packages"]),
        (["images", "build", "x/1", "--definition", "site"], ["site"]),
        (["images", "list", ""], []),
        (["check", ""], []),
    ],
)
def test_words_are_completed(words: list[str], proposed: list[str], folder: Path) -> None:
    assert completed(folder, *words) == proposed


def test_without_images_nothing_is_proposed(tmp_path: Path) -> None:
    assert completed(tmp_path, "images", "retire", "") == []


@pytest.mark.parametrize("action", ACTIONS)
def test_every_option_is_in_the_manual_and_the_completion(
    action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["images", action, "--help"])
    options = set(re.findall(r"--[a-z-]+", capsys.readouterr().out.partition("options:")[2]))
    page = (DOC / "slipway-images.1").read_text().replace("\\-", "-")
    completion = (DOC / "completion.bash").read_text()
    for option in options - {"--help", "--mem"}:
        assert option in page
        assert option in completion
    assert f"slipway images {action}" in page


def test_every_command_is_proposed_and_has_its_place_in_the_manual(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = capsys.readouterr().out.partition("COMMAND\n")[2]
    commands = set(re.findall(r"^    ([a-z-]+)", listed, flags=re.MULTILINE))
    assert set(completed(folder, "")) == commands
    manual = (DOC / "slipway.8").read_text().replace("\\-", "-")
    assert {
        name for name in commands if not re.search(rf"^\.(B|BR) .*\b{name}\b", manual, re.M)
    } == set()
