"""What this machine has for builds."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from portal.adapters.images.machine import detect_machine

USER = pwd.getpwuid(os.geteuid()).pw_name


def ids(folder: Path, uids: str, gids: str) -> tuple[Path, Path]:
    files = folder / "subuid", folder / "subgid"
    files[0].write_text(uids)
    files[1].write_text(gids)
    return files


def test_programs_are_found_in_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "pacstrap"
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = detect_machine()
    assert "pacstrap" in found.programs
    assert not {"apptainer", "srun"} & found.programs
    assert not found.namespaces  # there is no unshare
    assert found.user == USER


def test_ids_are_needed_in_both_files_by_name_or_number(tmp_path: Path) -> None:
    line = "100000:65536\n"
    assert detect_machine(ids(tmp_path, f"{USER}:{line}", f"{os.geteuid()}:{line}")).ids
    assert not detect_machine(ids(tmp_path, f"{USER}:{line}", f"x{USER}:{line}")).ids
    assert not detect_machine((tmp_path / "none", tmp_path / "none")).ids
