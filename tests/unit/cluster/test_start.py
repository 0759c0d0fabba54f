"""How long the start of the cluster waits for what it has started."""

from __future__ import annotations

import subprocess

from tests.support.paths import ROOT


def waits(command: str, running: str, patience: int = 60) -> tuple[int, str]:
    """Exit code and output of wait_for, with stand-ins for the container's state and its log."""
    script = f"""
        . "$1"
        is_running() {{ {running}; }}
        last_lines() {{ echo "log of $1"; }}
        PATIENCE={patience} tries=0
        {command}
    """
    argv = ["bash", "-c", script, "bash", str(ROOT / "cluster" / "start.sh")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def test_as_long_as_the_container_runs() -> None:
    later = "answers() { tries=$((tries + 1)); [ $tries = 4 ]; }; wait_for portal answers"
    assert waits(later, "true") == (0, "")


def test_no_longer_than_its_container_runs() -> None:
    assert waits("wait_for portal false", "false") == (
        1,
        "the container of portal has ended\nlog of portal\n",
    )


def test_not_for_ever() -> None:
    code, output = waits("wait_for portal false", "true", patience=1)
    assert (code, output) == (1, "gave up after 1 s: false\nlog of portal\n")
