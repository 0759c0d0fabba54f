"""`slipway images list`, `retire` and `prune` with a real database and folder."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from portal.cli.main import main
from tests.support.paths import ROOT


@pytest.fixture
def config(tmp_path: Path) -> str:
    """A site with two versions, one of which was replaced an hour ago."""
    file = tmp_path / "slipway.toml"
    places = {name: json.dumps(str(tmp_path / name)) for name in ("state", "run", "images")}
    file.write_text(
        f"[sessions]\ntemplates = {json.dumps(str(ROOT / 'templates'))}\n"
        f"images = {places['images']}\n"
        f"[state]\ndirectory = {places['state']}\nrun = {places['run']}\n"
    )
    for version in ("1", "2"):
        folder = tmp_path / "images" / "tool" / version
        folder.mkdir(parents=True)
        for digit in "ab":
            (folder / f"image-{digit * 16}.sif").write_bytes(bytes(1 << 20))
        link = folder / "image.sif"
        link.symlink_to(f"image-{'b' * 16}.sif")
        before = time.time() - 3600
        os.utime(link, (before, before), follow_symlinks=False)
        (folder / "image.toml").write_text(f'title = "Tool {version}"')
    assert main(["--config", str(file), "init"]) == 0
    return str(file)


def say(config: str, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["--config", config, "images", *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_images_are_listed(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, shown, _ = say(config, capsys, "list")
    first, second, third = shown.splitlines()
    assert status == 0
    assert first.split() == ["IMAGE", "TITLE", "SIZE", "BUILT", "SESSIONS"]
    assert second.startswith("tool/1  Tool 1  1.0 MB  ")
    assert third.endswith("0         1 replaced")


def test_replaced_files_are_pruned_after_a_dry_run(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, shown, _ = say(config, capsys, "prune", "--dry-run")
    assert shown.splitlines() == [
        "would delete 1 replaced of tool/1", "would delete 1 replaced of tool/2",
        "to be freed: 2.0 MB",
    ]  # fmt: skip
    assert say(config, capsys, "prune")[1].splitlines()[-1] == "freed: 2.0 MB"
    folder = tmp_path / "images/tool/1"
    assert sorted(path.name for path in folder.glob("*.sif")) == [
        "image-bbbbbbbbbbbbbbbb.sif",
        "image.sif",
    ]
    assert say(config, capsys, "prune")[1] == "freed: nothing\n"


def test_only_the_named_images_are_pruned(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert say(config, capsys, "prune", "tool/2")[1].splitlines() == [
        "deleted 1 replaced of tool/2", "freed: 1.0 MB",
    ]  # fmt: skip
    assert say(config, capsys, "list")[1].count("1 replaced") == 1
    status, _, error = say(config, capsys, "prune", "tool/3")
    assert (status, error.startswith("slipway: there is no image tool/3 in ")) == (1, True)


def test_a_retired_version_is_hidden_and_can_return(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown, _ = say(config, capsys, "retire", "tool/1")
    assert (status, shown) == (0, "tool/1 is retired: it cannot be launched any more\n")
    assert "retired 20" in say(config, capsys, "list")[1]
    assert "kept tool/1: retired less than ten minutes ago" in say(config, capsys, "prune")[1]
    assert say(config, capsys, "retire", "tool/1", "--undo")[1] == "tool/1 is offered again\n"
    status, _, wrong = say(config, capsys, "retire", "tool/1", "--undo")
    assert (status, wrong) == (1, "slipway: tool/1 is not retired\n")


def test_a_retired_version_is_deleted_when_its_time_has_come(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    say(config, capsys, "retire", "tool/1")
    before = time.time() - 3600
    os.utime(tmp_path / "images/tool/1/retired", (before, before))
    assert "deleted tool/1\n" in say(config, capsys, "prune")[1]
    assert not (tmp_path / "images/tool/1").exists()
    assert (tmp_path / "images/tool/2/image.sif").exists()


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("retire", "tool/9"), "there is no image tool/9"),
        (("retire", "tool"), "write ENVIRONMENT/VERSION"),
        (("show", "tool/9"), "there is no image tool/9"),
        (("build", "tool/9"), "there is no recipe"),
        (("build", "tool/9", "--from", "tool:1"), "write the address of an image"),
        (("build", "tool/9", "--definition", "/nowhere"), "--definition /nowhere: No such file"),
        (("test", "tool/9"), "has no test"),
    ],
)
def test_mistakes_are_answered(
    config: str, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], wrong: str
) -> None:
    status, _, shown = say(config, capsys, *words)
    assert status == 1
    assert wrong in shown
