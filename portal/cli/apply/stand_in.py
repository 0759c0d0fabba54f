"""Answers HAProxy's health check while the worker restarts, so that apps stay open."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from portal.adapters.haproxy.agent import follows, socket_path
from portal.cli.apply.account import slipway, start_as_owner
from portal.config import Settings

_BEGIN_SECONDS, _END_SECONDS = 30.0, 30.0
"""Time limits for the stand-in's and then the new worker's first answer to HAProxy."""
_PAUSE = 0.1


class StandIn:
    """A stand-in for the worker, `slipway worker --meanwhile`; does nothing with one host.

    HAProxy closes the apps if its health check fails for some seconds (core/hosts.py), and on a
    busy machine a worker needs as long to start.
    """

    def __init__(self, settings: Settings, file: Path, wait: Callable[[float], None]) -> None:
        self._settings, self._file, self._wait = settings, file, wait
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> None:
        run = self._settings.state.run
        if not (self._settings.state.several_hosts and follows(run)):
            return
        before, argv = _inode(run), slipway(self._file, "worker", "--meanwhile")
        process = self._process = start_as_owner(self._settings, argv)
        if not self._until(lambda: _inode(run) != before and follows(run), _BEGIN_SECONDS):
            print("slipway: nobody stands in for the worker; apps may be shut for a moment",
                  file=sys.stderr)  # fmt: skip
            process.terminate()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process = self._process
        if process is None:
            return
        self._until(lambda: process.poll() is not None, _END_SECONDS)  # it ends by itself
        process.terminate()
        process.wait()

    def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline or self._has_failed():
                return False
            self._wait(_PAUSE)
        return True

    def _has_failed(self) -> bool:
        return self._process is not None and self._process.poll() not in (None, 0)


def _inode(run: str) -> int:
    """The inode of the agent's socket, which changes with each process."""
    try:
        return Path(socket_path(run)).stat().st_ino
    except OSError:
        return 0
