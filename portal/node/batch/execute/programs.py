"""srun's options that concern its program, which here is the user's: the job name and --bcast.

srun itself starts this command, which starts the user's program in the image (steps.in_image).
"""

from __future__ import annotations

import os
import secrets
import subprocess

from portal.node.batch import real
from portal.node.batch.options import OptionError, completed, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from portal.node.batch.options import CommandLine

VARIABLES = ("SLURM_BCAST", "SLURM_BCAST_EXCLUDE", "SLURM_SEND_LIBS")
"""srun's variables that are equivalent to the removed options."""
_OPTIONS = frozenset(("bcast", "bcast-exclude", "send-libs"))
_WITH_WORD = "bcast-exclude"


class Copy:
    """A program's file that has to be on all nodes of the job before the step starts."""

    __slots__ = ("source", "target")

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target


def prepare(
    words: Sequence[str], folder: str, environment: Mapping[str, str], root: str = ""
) -> tuple[list[str], list[Copy]]:
    """srun's arguments for programs in an image, and the files to copy; raises OptionError.

    `folder`, `environment`: the caller's. `root`: in front of paths that the caller sees. Libraries
    are not copied, since those of the image are on all nodes.
    """
    prepared: list[str] = []
    copies: list[Copy] = []
    while True:
        line = parse("srun", words)
        end = line.command.index(":") if ":" in line.command else len(line.command)
        command, words = line.command[:end], line.command[end + 1 :]
        options = [
            f"--{name}={value}" if value else f"--{name}" for name, value in line.slipway_options
        ]
        options += _passed_on(line.options)
        if command:
            if _is_unnamed(line, environment):
                options.insert(0, f"--job-name={os.path.basename(command[0])}")
            target = line.values.get("bcast", environment.get("SLURM_BCAST"))
            if target is not None:
                source = _source(command[0], folder, environment, root)
                copies.append(Copy(source, _target(target, line, folder, environment)))
                command = [copies[-1].target, *command[1:]]
        prepared += [*options, *command]
        if not words:
            return prepared, copies
        prepared.append(":")


def _passed_on(options: Sequence[str]) -> list[str]:
    passed = []
    is_value = False
    for word in options:
        name = completed("srun", word[2:].partition("=")[0]) if word.startswith("--") else ""
        if not is_value and name not in _OPTIONS:
            passed.append(word)
        is_value = not is_value and name == _WITH_WORD and "=" not in word
    return passed


def _is_unnamed(line: CommandLine, environment: Mapping[str, str]) -> bool:
    """Whether Slurm would take the program's name; in a job SLURM_JOB_NAME names the job alone."""
    has_name = "SLURM_JOB_NAME" in environment and "SLURM_JOB_ID" not in environment
    return "job-name" not in line.values and not has_name


def _source(program: str, folder: str, environment: Mapping[str, str], root: str) -> str:
    """The file of a program, as srun finds it."""
    if "/" in program:
        candidates = [os.path.join(folder, program)]
    else:
        paths = environment.get("PATH", "").split(":")
        candidates = [os.path.join(folder, path, program) for path in paths if path]
    for candidate in candidates:
        if os.path.isfile(root + candidate):
            return root + candidate
    raise OptionError(f"--bcast: there is no file {program}")


def _target(value: str, line: CommandLine, folder: str, environment: Mapping[str, str]) -> str:
    """Return the copy's path on each node; without a file name, a unique one."""
    if value and not value.endswith("/"):
        return os.path.join(folder, line.chdir, value)
    name = f"slurm_bcast_{environment.get('SLURM_JOB_ID', '')}.{secrets.token_hex(4)}"
    return os.path.join(folder, line.chdir, value or "/tmp/", name)  # noqa: S108 - as srun's


def send(
    copies: Sequence[Copy],
    environment: Mapping[str, str],
    on_start: Callable[[], object] | None = None,
) -> None:
    """Copy the files to all nodes of the job; raises OptionError.

    `on_start`: called in each new process, which otherwise inherits the blocked signals.
    """
    if copies and "SLURM_JOB_ID" not in environment:
        raise OptionError(
            "--bcast: there is no job yet whose nodes could get the program. Use it in a job of "
            "slipway sbatch or slipway salloc"
        )
    for copy in copies:
        path = real.find("sbcast", environment)
        if not path:
            raise OptionError("--bcast: Slurm's sbcast was not found in PATH")
        words = [path, "--force", copy.source, copy.target]
        result = subprocess.run(
            words,
            env=dict(environment),
            stderr=subprocess.PIPE,
            check=False,
            preexec_fn=on_start,
        )
        if result.returncode != 0:
            lines = result.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
            reason = lines[-1] if lines else f"sbcast ended with {result.returncode}"
            raise OptionError(f"--bcast: {reason}")
