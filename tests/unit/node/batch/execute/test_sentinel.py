"""The process that tells whether a whole group was signalled."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT

STOPPED = """
import os, signal
from pathlib import Path
from portal.node.batch.execute.sentinel import Sentinel
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
found = Sentinel()
process = found._process
os.kill(process, signal.SIGSTOP)
while ") T " not in Path(f"/proc/{process}/stat").read_text():
    pass
print(found.has_got(signal.SIGUSR1))
found.stop()
print(Path(f"/proc/{process}").exists())
"""


def test_one_that_was_stopped_holds_nobody_up() -> None:
    """`scancel --full --signal=STOP` stops all of Slurm's group."""
    done = subprocess.run(
        [sys.executable, "-c", STOPPED],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("False\nFalse\n", "")
