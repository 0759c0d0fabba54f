"""Explain sbatch's error while slurmctld does not know the nodes' GPUs, shortly after its restart.

Only for jobs with a share of a GPU (--fgpu), whose GPUs are in the site's settings.
"""

from __future__ import annotations

import os
import signal

from portal.node.batch import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = b"Invalid generic resource"
NOTE = (
    b"slipway: note: In the first seconds after its restart Slurm does not know the GPUs of its "
    b"nodes yet. Try again in a few seconds. If it lasts, tell the administrators.\n"
)
_LONGEST = 1 << 16
_OF_TERMINALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)


def run(name: str, words: Sequence[str], environment: dict[str, str]) -> int:
    """Run a Slurm command as child.run does; its error output is copied as it appears."""
    child.notice_children()
    errors = os.dup(2)
    source, sink = os.pipe()
    copier = os.fork()
    if copier == 0:
        os.close(sink)
        _copy(source, errors)
    os.close(source)
    os.dup2(sink, 2)
    os.close(sink)
    try:
        return child.run(name, words, environment)
    finally:
        os.dup2(errors, 2)  # which ends the pipe, and with it the copier
        os.close(errors)
        os.waitpid(copier, 0)


def _copy(source: int, errors: int) -> None:
    """In a child process: copy the output, then add the note if the error is in it."""
    try:
        for number in _OF_TERMINALS:  # they end sbatch, whose last output is still to come
            signal.signal(number, signal.SIG_IGN)
        tail = b""
        while data := os.read(source, _LONGEST):
            tail = (tail + data)[-_LONGEST:]
            os.write(errors, data)
        if MARK in tail:
            os.write(errors, NOTE)
    finally:
        os._exit(0)
