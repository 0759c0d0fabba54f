"""The program that becomes a job's script in its container."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from portal.node.runner.batch.command import Options
from tests.support.paths import ROOT

BECOME = """
import os, sys
from portal.node.runner.batch.command import Options, become
become(Options(sys.argv[1:]), dict(os.environ))
"""


def become(*words: str) -> subprocess.CompletedProcess[str]:
    """Become a program, with these words of the launcher's."""
    return subprocess.run(
        [sys.executable, "-c", BECOME, *words],
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def script(folder: Path, text: str, mode: int = 0o700) -> str:
    """A script in the folder."""
    file = folder / "slurm_script"
    file.write_text(text)
    file.chmod(mode)
    return str(file)


def test_the_script_gets_its_own_name_and_arguments(tmp_path: Path) -> None:
    file = script(tmp_path, '#!/bin/sh\nprintf "%s|" "$0" "$@"; exit 7\n')
    done = become("--job", "--", file, "a b", "", "-x")
    assert (done.stdout, done.returncode) == (f"{file}|a b||-x|", 7)


@pytest.mark.parametrize("first", ["#!/bin/sh", "#! /bin/sh -e", "#!/usr/bin/env sh"])
def test_a_script_on_a_file_system_without_execution_runs(first: str, tmp_path: Path) -> None:
    # A file without permission fails as every file does on such a file system.
    file = script(tmp_path, f'{first}\nprintf "%s|" "$0" "$@"\n', 0o600)
    done = become("--job", "--", file, "a b", "")
    assert (done.stdout, done.stderr) == (f"{file}|a b||", "")


def test_the_interpreter_has_one_argument(tmp_path: Path) -> None:
    file = script(tmp_path, "#!/usr/bin/printf  <%s> <%s>\nx\n", 0o600)
    assert become("--job", "--", file).stdout == f"<{file}> <>"


def test_programs_of_steps_need_their_permission(tmp_path: Path) -> None:
    done = become("--", script(tmp_path, "#!/bin/sh\necho ran\n", 0o600))
    assert (done.stdout, done.returncode) == ("", errno.EACCES)  # as slurmstepd ends
    assert done.stderr == f"Slipway: {tmp_path}/slurm_script: Permission denied\n"


@pytest.mark.parametrize("mode", [0o700, 0o600])
def test_an_interpreter_that_the_image_lacks_is_named(mode: int, tmp_path: Path) -> None:
    file = script(tmp_path, "#!/opt/none/Rscript --vanilla\n", mode)
    done = become("--job", "--image", "r/4", "--", file)
    assert (done.stdout, done.returncode) == ("", 127)
    assert done.stderr == (
        "Slipway: r/4 has no /opt/none/Rscript, which the first line of the script names\n"
    )


def test_a_program_that_the_image_lacks_is_named() -> None:
    done = become("--image", "r/4", "--", "nonesuch")
    assert (done.stdout, done.stderr) == ("", "Slipway: r/4 has no nonesuch\n")
    assert done.returncode == errno.ENOENT


def test_folders_that_were_seen_are_noted() -> None:
    options = Options(["--seen", "1:2 /a b", "--gpu", "--seen", "3:4 /c", "--", "x"])
    assert (options.shared_folders, options.gpu, options.program) == (
        ["1:2 /a b", "3:4 /c"],
        True,
        ["x"],
    )
