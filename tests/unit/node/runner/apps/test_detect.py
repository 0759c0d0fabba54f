"""Detection of the apps that an image can run."""

from __future__ import annotations

from pathlib import Path

from portal.node.runner.apps.detect import detect


def test_any_program_of_an_app_is_enough(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    for name, mode in (("lab", 0o755), ("notes", 0o644)):
        (second / name).write_text("")
        (second / name).chmod(mode)
    (first / "folder").mkdir()
    file = tmp_path / "server.js"
    file.write_text("")
    probes = {
        "any": [],
        "lab": ["jupyter", "lab"],
        "missing": ["jupyter"],
        "not-a-program": ["notes"],
        "folder": ["folder"],
        "file": [str(file)],
        "no-file": [str(tmp_path / "other.js")],
    }
    assert detect(probes, f"{first}:{second}") == ["any", "lab", "file"]


def test_an_image_without_a_path(tmp_path: Path) -> None:
    assert detect({"any": (), "lab": ("lab",)}, "") == ["any"]
