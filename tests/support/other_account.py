"""What another account can really do in somebody's folders on this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from portal.node.file_server.operations.records import Records

BOB = pwd.getpwnam("nobody")
_TEST = 'while IFS= read -r path; do [ -r "$path" ] && printf "%s\\n" "$path"; done; true'


@contextmanager
def private_home() -> Iterator[Path]:
    """A home that nobody else may enter, in a place that everybody can reach; new files are
    readable by their owner only.
    """
    above = Path(tempfile.mkdtemp())
    before = os.umask(0o077)
    try:
        above.chmod(0o755)
        home = above / "home"
        (home / "storage").mkdir(parents=True)
        yield home
    finally:
        os.umask(before)
        _wait_for_records()
        shutil.rmtree(above)


def _wait_for_records() -> None:
    """Wait for threads that record operations below the home after their end."""
    for thread in threading.enumerate():
        if thread.name.endswith(f"({Records._write_all.__name__})"):
            thread.join(10)


def as_bob(*command: str, input: str = "") -> str:
    """The output of a command with bob's rights, which may fail."""
    done = subprocess.run(
        command,
        user=BOB.pw_uid,
        group=BOB.pw_gid,
        extra_groups=[],
        input=input,
        text=True,
        capture_output=True,
        check=False,
        cwd="/",
    )
    return done.stdout


def done_by_bob(work: Callable[[], object]) -> int:
    """Do work in a process with bob's rights and a umask of 022; returns its exit status."""
    return done_by(BOB, work)


def done_by(
    account: pwd.struct_passwd, work: Callable[[], object], groups: Sequence[int] = ()
) -> int:
    """Do work in a process of an account, with a umask of 022; returns its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        os.setgroups(groups)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        os.umask(0o022)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def readable_by_bob(paths: Iterable[Path]) -> set[Path]:
    """Those that bob can read by their paths; none may have a line break in its name."""
    found = as_bob("sh", "-c", _TEST, input="".join(f"{path}\n" for path in paths))
    return {Path(line) for line in found.splitlines()}


def files_of(home: Path) -> list[Path]:
    """All files below a home, apart from Slipway's own."""
    return [p for p in home.rglob("*") if p.is_file() and ".slipway" not in p.parts]
