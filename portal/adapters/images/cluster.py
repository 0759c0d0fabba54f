"""Runs a command as a job of Slurm's, with its output on this screen."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Sequence

from portal.adapters.images.processes import run_shown
from portal.core.images.names import ImageError

_NOT_FOUND = 127
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
"""srun forwards the first signal; on the second it kills the job, which leaves its folder."""


class SlurmRunner:
    """Runs srun on the submit host, usually a login node."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    def __call__(self, name: str, options: Sequence[str], arguments: Sequence[str]) -> int:
        """Run `slipway` with these arguments in a job; returns its exit status."""
        if shutil.which("srun") is None:
            raise ImageError(
                "--on-cluster: srun is not on this machine; run the command on a login node, or "
                "without --on-cluster"
            )
        command = ["srun", f"--job-name={name}", "--ntasks=1", "--unbuffered"]
        command += ["--disable-status", *options]  # one Ctrl-C reaches the job
        python = [sys.executable, "-m", "portal.cli", *arguments]
        self._note(f"Waiting for Slurm: {' '.join(command)}")
        status, _ = run_shown([*command, *python], self._note, ends=_ENDS)
        if status == _NOT_FOUND:
            self._note(f"the node has no {sys.executable}: install Slipway on shared storage")
        return status
