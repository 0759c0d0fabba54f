"""Starts the program of a batch job or step in its container: `command [OPTION…] -- PROGRAM …`.

It prepares the parts that Apptainer cannot: the job's environment, the size of shared memory, a
share of a GPU, the variables of --env-file, and clients of Slurm's commands. Then it starts the
program, which is signalled from outside (node/batch/execute/supervisor.py), and ends its leftovers.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import json
import os
import signal
import sys

from ..mounts.namespace import Namespace, NotGranted
from .barrier import wait_for_all
from .coercion import take_back
from .leftovers import Leftovers
from .streams import reserve_streams
from .supervisor import SLURM, SUPERVISOR, Supervisor, merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import Any, NoReturn

TOOLKIT = "/opt/slipway"
CLIENTS = f"{TOOLKIT}/slurm"
"""Folder of srun, squeue and so on (slurm_client.py)."""
REQUEST, VARIABLES, STEP = "SLURM_SLIPWAY_REQUEST", "SLURM_SLIPWAY_ENV", "SLURM_SLIPWAY_STEP"
"""As in portal/node/batch/handover.py."""
FAILED = 70
NOT_EXECUTABLE, NOT_FOUND = 126, 127
"""As a shell exits, for a batch script."""


class Options:
    """The launcher's own options."""

    __slots__ = ("gpu", "image", "job", "program", "shared", "shared_folders", "shm", "temporary")

    def __init__(self, words: list[str]) -> None:
        self.gpu = False
        self.shared = False
        """Whether other tasks of the step share this container."""
        self.image = "the image"
        self.job = False
        """Whether it is a batch job's script, not a task of a step."""
        self.shared_folders: list[str] = []
        """Other users' folders (mounts/shared.py)."""
        self.shm = 0
        self.temporary: list[str] = []
        """Variables of folders for temporary files that the node has."""
        index = 0
        while words[index] != "--":
            match words[index]:
                case "--gpu":
                    self.gpu = True
                    index -= 1
                case "--shared":
                    self.shared = True
                    index -= 1
                case "--image":
                    self.image = words[index + 1]
                case "--job":
                    self.job = True
                    index -= 1
                case "--seen":
                    self.shared_folders.append(words[index + 1])
                case "--shm":
                    self.shm = int(words[index + 1])
                case "--temporary":
                    self.temporary.append(words[index + 1])
                case unknown:
                    raise ValueError(f"unknown option {unknown}")
            index += 2
        self.program = words[index + 1 :]


def main() -> NoReturn:
    """Prepare the container, run the program, and end as it does."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    # In a container that tasks share, Apptainer signals the group that this process leads, and
    # exits if there is none.
    group = os.getpgrp()
    os.setpgid(0, 0)
    reserve_streams()
    take_back()
    try:
        options = Options(sys.argv[1:])
        supervisor = Supervisor(os.environ[SUPERVISOR])
        slurm = supervisor.environment()
        environment = merged(os.environ, slurm)
        _prepare(options, environment)
        set_variables(environment)
    except (NotGranted, OSError, ValueError, KeyError, IndexError) as error:
        _fail(f"the job's container could not be prepared: {error}", FAILED)
    environment[SLURM] = os.environ.get(SLURM, "")
    path = environment.get("PATH", "")
    environment["PATH"] = path if path.startswith(f"{CLIENTS}:") else f"{CLIENTS}:{path}"
    set_temporary(options, environment)
    leftovers = Leftovers(shared=options.shared)
    if options.shared:
        wait_for_all(slurm)  # Slurm's own, not those of the script
    group = group if os.isatty(0) else 0  # a terminal's, or as with sbatch one that it leads
    code = run(options, environment, supervisor, leftovers, group)
    os._exit(code)  # with nothing to tidy up


def run(
    options: Options,
    environment: dict[str, str],
    supervisor: Supervisor,
    leftovers: Leftovers,
    group: int,
) -> int:
    """Run the program in a process group, 0 for its own; returns its exit code as a shell does."""
    reading, writing = os.pipe()  # which ends when the program has begun, or could not
    child = os.fork()
    if child == 0:
        os.setpgid(0, group)
        # The program must not inherit Python's or Apptainer's handling of these.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        become(options, environment)
    os.close(writing)
    os.read(reading, 1)
    supervisor.began(child)
    status = leftovers.wait(child)
    supervisor.ended(status)
    leftovers.end()
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _prepare(options: Options, environment: dict[str, str]) -> None:
    if options.shared_folders:
        from ..mounts.shared import check  # noqa: PLC0415 - most jobs have none

        check(options.shared_folders)
    namespace = Namespace()
    if options.shm:
        try:
            namespace.mount_memory("/dev/shm", options.shm)  # noqa: S108 - the mount point
        except OSError as error:
            text = f"this node does not let /dev/shm have {options.shm} MB: {error}"
            raise NotGranted(text) from None
    if options.gpu:
        from ..gpu.mps import common_memory  # noqa: PLC0415 - most jobs have no GPU
        from ..gpu.share import environment as gpu_environment  # noqa: PLC0415
        from ..gpu.share import prepare  # noqa: PLC0415

        granted = prepare(namespace, TOOLKIT)
        if granted.compute == "mps" and options.shm:
            common_memory(options.shm, must=True)
        environment.update(gpu_environment(granted, {}, environment))


def set_variables(environment: MutableMapping[str, str]) -> None:
    """Apply the variables that were handed over; raises ValueError."""
    variables = environment.pop(VARIABLES, "")
    if variables:
        environment.update(_table(json.loads(_decoded(variables))))
    environment.pop(REQUEST, None)
    step = environment.pop(STEP, "")
    if step:
        data = _table(json.loads(_decoded(step)))
        environment.update(_table(data["variables"]))
        folder = str(data["folder"])
        if os.path.isdir(folder):
            os.chdir(folder)


def _decoded(text: str) -> str:
    return base64.b64decode(text, validate=True).decode("utf-8", "surrogateescape")


def _table(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("the variables are not a table")
    return value


def set_temporary(options: Options, environment: MutableMapping[str, str]) -> None:
    """Use /tmp for temporary files, with a message, if the image lacks the node's folder."""
    for name in options.temporary:
        folder = environment.get(name, "")
        if folder and not os.access(folder, os.W_OK | os.X_OK):
            environment[name] = "/tmp"  # noqa: S108 - Apptainer mounts it
            text = f"Slipway: {name} is /tmp, since {options.image} does not have {folder}"
            print(text, file=sys.stderr, flush=True)


def become(options: Options, environment: dict[str, str]) -> NoReturn:
    """Execute the program, or explain the error."""
    program = options.program
    try:
        os.execvpe(program[0], program, environment)
    except OSError as error:
        if options.job and isinstance(error, PermissionError):
            _become_interpreter(program, environment)
        _explain(options, error)


def _explain(options: Options, error: OSError) -> NoReturn:
    """Report the missing file. A task exits as without an image: with the error's number."""
    name = options.program[0]
    not_found = NOT_FOUND if options.job else errno.ENOENT
    interpreter = _interpreter(name)
    if interpreter and not os.path.exists(interpreter[0]):
        line = "which the first line of the script names"
        _fail(f"{options.image} has no {interpreter[0]}, {line}", not_found)
    if isinstance(error, FileNotFoundError):
        _fail(f"{options.image} has no {name}", not_found)
    code = NOT_EXECUTABLE if options.job else error.errno or NOT_EXECUTABLE
    _fail(f"{name}: {error.strerror}", code)


def _become_interpreter(program: list[str], environment: dict[str, str]) -> None:
    """Start a script as the kernel does; nodes may mount its folder /tmp with "noexec"."""
    interpreter = _interpreter(program[0])
    with contextlib.suppress(OSError, IndexError):
        os.execve(interpreter[0], [*interpreter, *program], environment)


def _interpreter(path: str) -> list[str]:
    """The interpreter that a script's first line names, and its argument; [] without one."""
    try:
        with open(path, "rb") as stream:
            first = stream.readline(256)
    except OSError:
        return []
    # The kernel passes all that follows the interpreter as one argument.
    words = first[2:].split(maxsplit=1) if first.startswith(b"#!") else []
    return [os.fsdecode(word.strip()) for word in words]


def _fail(text: str, code: int) -> NoReturn:
    print(f"Slipway: {text}", file=sys.stderr, flush=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
