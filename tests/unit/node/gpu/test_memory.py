"""The counters' file system, really mounted, in a separate namespace."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]
PROGRAM = """
import errno, os, sys
from pathlib import Path
from portal.node.gpu import slices
jobs = Path(sys.argv[1])
for job in (1, 2):
    slices.write(jobs, job, (os.getuid(), os.getgid()), {"slice": "version=1\\n"})
counters = jobs / "1" / "counters"
assert counters.stat().st_size == slices.COUNTERS_SIZE
assert counters.stat().st_dev != jobs.stat().st_dev
held = counters.open("r+b")
def code(deed):
    try:
        deed()
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
def more():
    os.pwrite(held.fileno(), b"x" * 4096, slices.COUNTERS_SIZE)
def attributes():
    for number in range(1000):
        os.setxattr(held.fileno(), "user.x%d" % number, b"x" * 1000)
print(code(more), code(attributes) != "done")
(jobs / ".new-3" / "room").mkdir(parents=True)
slices.memory.mount(jobs / ".new-3" / "room", 4096)
(jobs / ".new-3" / "room" / "counters").touch()
slices.write(jobs, 3, (os.getuid(), os.getgid()), {"slice": "version=1\\n"})
for job in (1, 2, 3):
    slices.remove(jobs, job)
    slices.remove(jobs, job)
print(list(jobs.iterdir()), str(jobs) in Path("/proc/self/mounts").read_text())
"""


def test_user_writes_are_bounded_and_nothing_is_left(tmp_path: Path) -> None:
    """L1: counters could grow until /run was full."""
    words = ["unshare", "--mount", "--map-root-user", sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        [*words, str(tmp_path / "jobs")],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["ENOSPC True", "[] False"]
