"""The suite for a real GPU passes on the stand-in driver, and so does limiting a share.

Tests that need a framework are skipped, so only that suite's plain CUDA runs here.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.gpu.session import ROOT, Program
from tests.unit.gres.conftest import UUID, Shim, Standin


def suite(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run its tests as run.sh does."""
    settings = ["--confcutdir=tests/gpu", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *words, *settings],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_passes_on_the_stand_in_driver(standin: Standin, tmp_path: Path) -> None:
    done = suite(
        "tests/gpu/test_driver.py",
        SLIPWAY_GPU_DRIVER=str(standin.directory),
        SLIPWAY_GPU_WORK=str(tmp_path),
    )
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout
    assert (tmp_path / "figures.json").exists()


def test_it_refuses_to_run_without_a_driver(tmp_path: Path) -> None:
    done = suite("tests/gpu/test_driver.py", SLIPWAY_GPU_DRIVER=str(tmp_path))
    assert done.returncode == 1
    assert "needs an NVIDIA GPU" in done.stdout


def busy(standin: Standin, sessions: list[Shim], us: int) -> float:
    """The GPU's busy time, by its own clock, while each session is fully loaded."""
    with ExitStack() as stack:
        programs = [
            stack.enter_context(
                Program("driver", ("busy", 2, us), {"LD_LIBRARY_PATH": str(session.libraries)})
            )
            for session in sessions
        ]
        for program in programs:
            assert program.next_message()["ready"]
        before = standin.show()
        for program in programs:
            program.go_on()
        for program in programs:
            assert program.end()["rate"]
        after = standin.show()
    used = after["gpus"][0]["busy_ns"] - before["gpus"][0]["busy_ns"]
    return float(used / (after["now_ns"] - before["now_ns"]))


@pytest.mark.parametrize("us", [1000, 50_000])
def test_two_busy_sessions_keep_to_their_shares(
    standin: Standin, shim: Callable[..., Shim], us: int
) -> None:
    """25 % each. In real time, so only an excess is wrong: a slow machine lowers it."""
    sessions = [shim("session"), shim("neighbour")]
    for session in sessions:
        session.grant((UUID.format(0), 1 << 30, 25))
    assert 0.02 < busy(standin, sessions, us) < 0.6


def test_without_a_limit_the_same_program_takes_all(
    standin: Standin, shim: Callable[..., Shim]
) -> None:
    session = shim("session")
    session.grant((UUID.format(0), 1 << 30, 100))
    assert busy(standin, [session], 50_000) > 0.4
