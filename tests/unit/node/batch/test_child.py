"""Signals that a command of Slurm's gets, and what only this process gets."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.paths import ROOT

RUN = """
import os, sys
from portal.node.batch import child
child.end(child.run("sbatch", [], dict(os.environ)))
"""
NAMES = ["HUP", "QUIT", "USR1", "USR2", "ALRM", "CONT", "XCPU", "WINCH", "PIPE", "CHLD", "INT"]


def command(folder: Path, text: str) -> subprocess.Popen[bytes]:
    """Run a script in the place of sbatch, as its wrapper does."""
    (folder / "sbatch").write_text(f"#!{sys.executable} -IS\n{text}\n")
    (folder / "sbatch").chmod(0o755)
    return subprocess.Popen(
        [sys.executable, "-c", RUN],
        env={"PYTHONPATH": str(ROOT), "PATH": f"{folder}:/usr/bin:/bin"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        process_group=0,  # nothing stops one whose group has no parent in its session
    )


AWAIT = """
import os, signal
awaited = signal.valid_signals()
signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
print("up", flush=True)
while True:
    number = signal.sigwait(awaited)
    if number == signal.SIGTERM:
        os._exit(3)
    print(int(number), flush=True)
"""


def test_a_burst_is_passed_on_each_signal_once(tmp_path: Path) -> None:
    found = command(tmp_path, AWAIT)
    assert found.stdout is not None
    assert found.stdout.readline() == b"up\n"
    numbers = [getattr(signal, f"SIG{name}") for name in NAMES]
    for _ in range(5):
        for number in numbers:
            found.send_signal(number)
        lines = sorted(int(found.stdout.readline()) for _ in numbers)
        assert lines == sorted(number.value for number in numbers)
    found.send_signal(signal.SIGTERM)
    assert found.communicate()[0] == b""
    assert found.returncode == 3


@pytest.mark.parametrize("name", ["TERM", "USR1", "KILL", "RTMIN"])
def test_it_ends_by_the_signal_that_ended_the_command(name: str, tmp_path: Path) -> None:
    found = command(tmp_path, f"import os, signal; os.kill(os.getpid(), signal.SIG{name})")
    found.communicate()
    assert found.returncode == -getattr(signal, f"SIG{name}")


def test_the_command_blocks_nothing(tmp_path: Path) -> None:
    text = "import os\nos.execv('/bin/grep', ['grep', '-E', 'SigBlk', '/proc/self/status'])"
    out, _ = command(tmp_path, text).communicate()
    assert [int(line.split()[1], 16) for line in out.splitlines()] == [0]


def test_ctrl_z_stops_it_as_well(tmp_path: Path) -> None:
    found = command(tmp_path, AWAIT)
    assert found.stdout is not None
    assert found.stdout.readline() == b"up\n"
    found.send_signal(signal.SIGTSTP)
    stopped = os.waitpid(found.pid, os.WUNTRACED)[1]
    assert os.WIFSTOPPED(stopped)
    found.send_signal(signal.SIGCONT)
    time.sleep(0.05)
    found.send_signal(signal.SIGTERM)
    found.communicate()
    assert found.returncode == 3


def test_a_caller_that_ignores_its_children_gets_the_exit_code(tmp_path: Path) -> None:
    """As daemons do, and whatever they start inherits it."""
    (tmp_path / "sbatch").write_text("#!/bin/sh\nsleep 0.3\nexit 5\n")
    (tmp_path / "sbatch").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", "-c", "trap '' CHLD; exec \"$@\"", "sh", sys.executable, "-c", RUN],
        env={"PYTHONPATH": str(ROOT), "PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.stderr, done.returncode) == (b"", 5)
