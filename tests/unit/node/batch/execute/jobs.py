"""Batch scripts that run in a container without Apptainer: everything else is as on a node."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from portal.node.batch.request import Request
from portal.node.batch.submit import wrapped
from tests.support.paths import ROOT

SLIPWAY = """#!{python} -ISXutf8
import sys
sys.path.append("{root}")
from portal.node.batch.main import main
main()
"""
APPTAINER = """#!{python} -IS
import json, os, shutil, subprocess, sys, time
words = sys.argv[1:]
os.environ.pop("LC_CTYPE", None)  # Python's own
place = words.index("/opt/slipway/bin/command")
mounts = {{}}
for word in words[:place]:
    if word.startswith("type=bind,"):
        source, target = word.split('"')[1::2][:2]
        mounts[target[4:]] = source[4:]
with open("{folder}/apptainer.json", "w") as stream:
    json.dump([words, dict(os.environ), mounts], stream)
time.sleep({delay})
while os.path.exists("{folder}/held"):
    time.sleep(0.01)
code = "import sys; sys.path[:0] = ['{root}']; \
from portal.node.runner.batch.command import main; main()"
def mounted(word):
    # A mount has its file, whatever becomes of the name that it had.
    return shutil.copy(mounts[word], "{folder}/mounted") if word in mounts else word
# Without a namespace of its own, it is no container that tasks could share.
words = [mounted(word) for word in words[place + 1 :] if word != "--shared"]
os.environ.update({variables})
code = subprocess.call([sys.executable, "-ISXutf8", "-c", code, *words])
with open("{folder}/unmounted", "w") as stream:
    stream.write("%f" % time.time())
sys.exit(code)
"""


class Node:
    """A compute node: a folder with what its programs are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.variables: dict[str, str] = {}
        """Variables that the image sets."""
        self.delay = 0.0
        """Seconds until the image is mounted."""
        self.request = Request()
        self.request.toolkit = self.request.image = "/dev/null"
        self.request.name = "test/1"
        self.request.command = str(folder / "slipway")
        self.request.apptainer = str(folder / "apptainer")
        text = SLIPWAY.format(python=sys.executable, root=ROOT)
        self.program("slipway", text)

    def program(self, name: str, text: str) -> Path:
        """Make a program in the folder."""
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def batch(self, script: str | bytes) -> list[str]:
        """The command that slurmstepd starts for a script."""
        self._make_apptainer()
        content = script if isinstance(script, bytes) else script.encode()
        path = self.program("slurm_script", "")
        path.write_bytes(wrapped.batch_script(content, self.request))
        return [str(path)]

    def step(self, *words: str) -> list[str]:
        """The command that slurmstepd starts for a task of a step."""
        self._make_apptainer()
        return [self.request.command, "node-step", "--", *words]

    def end(self) -> None:
        """End what was started in the folder, also what has left its group and its parents."""
        while running := self._running():
            for process in running:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)

    def _running(self) -> list[int]:
        found = []
        for link in Path("/proc").glob("[0-9]*/cwd"):
            process = int(link.parent.name)
            with contextlib.suppress(OSError):  # it has ended
                if link.readlink() == self.folder and process != os.getpid():
                    found.append(process)
        return found

    def _make_apptainer(self) -> None:
        self.program(
            "apptainer",
            APPTAINER.format(
                python=sys.executable,
                root=ROOT,
                folder=self.folder,
                delay=self.delay,
                variables=self.variables,
            ),
        )


@contextlib.contextmanager
def started(words: list[str], *, stderr: int | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program as slurmstepd does: it leads its process group. All of it ends."""
    child = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        preexec_fn=os.setpgrp,  # noqa: PLW1509 - process_group is new in Python 3.11
    )
    try:
        yield child
    finally:
        for process in [*descendants(child.pid), child.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        child.wait()
        for stream in (child.stdout, child.stderr):
            if stream:
                stream.close()


def children(process: int) -> list[int]:
    """PIDs of a process's children."""
    return _families().get(process, [])


def descendants(process: int) -> list[int]:
    """PIDs of all processes below one."""
    families = _families()
    found, waiting = [], [process]
    while waiting:
        below = families.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _families() -> dict[int, list[int]]:
    """The PIDs of all processes that have children, with these."""
    found: dict[int, list[int]] = {}
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            pid, rest = int(file.parent.name), file.read_text().rpartition(")")[2]
            found.setdefault(int(rest.split()[1]), []).append(pid)
    return found


def has_blocked(process: int) -> bool:
    """Whether a process has blocked USR1, as the supervisor has as soon as it is there."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("SigBlk:"):
            return bool(int(line.split()[1], 16) >> (signal.SIGUSR1 - 1) & 1)
    return False


def wait_until(true: Callable[[], object], seconds: float = 60) -> None:
    """Wait until something is the case."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.005)
