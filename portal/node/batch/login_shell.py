"""The environment and the umask of the user's login shell, in which a person types commands.

Neither is known over SSH: sshd runs a command in a shell that reads no login files, and functions
that bash exports do not survive a POSIX shell.
"""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import sys

from portal.node.common.slurm_variables import changes_sbatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

SECONDS = 10.0
"""Timeout of start-up files, whose settings, such as `module`, a job depends on."""
UMASK_SECONDS = 5.0
"""The same if only the umask is needed."""
_MOST = 16 << 20
_CONNECTION = {"SSH_CLIENT", "SSH_CONNECTION", "SSH_ORIGINAL_COMMAND", "SSH_TTY"}
"""Variables of the portal's connection, which must not reach a job."""
_SHELL_STATE = {"PWD", "OLDPWD", "_"}
"""Variables of the login shell's folder and last command."""
_TIMES = 3
"""A start-up file may read a line of its input."""
NOT_FOUND = 127


class Login:
    """A login shell's state; `umask` is None if the kernel does not show it (before Linux 4.7)."""

    __slots__ = ("environment", "umask")

    def __init__(self, environment: dict[bytes, bytes], umask: int | None) -> None:
        self.environment = environment
        self.umask = umask


def ask(environment: Mapping[bytes, bytes], seconds: float) -> Login | None:
    """Start the user's login shell with an environment, and return its state.

    None if it does not answer in time, or at all. The commands for it work in every shell: no
    quotes, no variables.
    """
    shell = pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    begin, middle = (os.urandom(12).hex().encode() for _ in range(2))
    line = b"echo %s; cat /proc/self/status; echo %s; exec env -0\n" % (begin, middle)
    line *= _TIMES
    # A file: background processes of start-up files may keep a pipe open.
    output = os.memfd_create("login")
    try:
        _run(shell, environment, line, output, seconds)
        printed = os.pread(output, _MOST, 0)
    finally:
        os.close(output)
    _, mark, answer = printed.rpartition(begin + b"\n")
    status, middle_mark, variables = answer.partition(middle + b"\n")
    if not (mark and middle_mark and variables.endswith(b"\0")):
        return None
    umask = re.search(rb"^Umask:\s*([0-7]{1,4})$", status, re.MULTILINE)
    pairs = (entry.partition(b"=")[::2] for entry in variables[:-1].split(b"\0"))
    return Login(dict(pairs), int(umask[1], 8) if umask else None)


def _run(
    shell: str, environment: Mapping[bytes, bytes], line: bytes, output: int, seconds: float
) -> None:
    """Start a login shell that reads a line; end it if it takes too long."""
    try:
        process = subprocess.Popen(
            ["-" + os.path.basename(shell)],
            executable=shell,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        return
    try:
        process.communicate(line, timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def adopt_umask() -> None:
    """Take the login shell's umask."""
    login = ask(os.environb, UMASK_SECONDS)
    if login is not None and login.umask is not None:
        os.umask(login.umask)


def main(words: list[str]) -> NoReturn:
    """Become a command with the login shell's environment and umask.

    Variables that would change the behaviour of sbatch are removed.
    """
    initial = _without(os.environb, _CONNECTION)
    login = ask(initial, SECONDS)
    if login is None:
        text = f"slipway: note: your login shell did not answer within {SECONDS:g} s"
        print(f"{text}, so its environment is not known", file=sys.stderr, flush=True)
    elif login.umask is not None:
        os.umask(login.umask)
    environment = _without(login.environment, _CONNECTION | _SHELL_STATE) if login else initial
    if b"PWD" in initial:
        environment[b"PWD"] = initial[b"PWD"]
    passed = {name: value for name, value in environment.items() if not _changes_sbatch(name)}
    try:
        os.execvpe(words[0], words, passed)
    except OSError as error:
        print(f"slipway: error: {words[0]}: {error.strerror}", file=sys.stderr)
    sys.exit(NOT_FOUND)


def _without(environment: Mapping[bytes, bytes], names: set[str]) -> dict[bytes, bytes]:
    return {name: value for name, value in environment.items() if os.fsdecode(name) not in names}


def _changes_sbatch(name: bytes) -> bool:
    return changes_sbatch(os.fsdecode(name))
