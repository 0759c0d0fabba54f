"""Says more where sbatch does not know the site's GPUs yet, right after a restart of slurmctld.

Only jobs with a share of a GPU (--fgpu) are submitted so: the site has the GPUs that they ask for.
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
    """Run a command of Slurm's as child.run does; what it says is passed on as it comes."""
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
    """In a process of its own: pass everything on, then add the note if it is needed."""
    try:
        for number in _OF_TERMINALS:  # they end sbatch, whose last words are still to come
            signal.signal(number, signal.SIG_IGN)
        seen = b""
        while data := os.read(source, _LONGEST):
            seen = (seen + data)[-_LONGEST:]
            os.write(errors, data)
        if MARK in seen:
            os.write(errors, NOTE)
    finally:
        os._exit(0)
