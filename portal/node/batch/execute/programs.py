"""srun's options about its programs: a step is named after the user's own, and --bcast copies that.

What srun starts is this command, which starts the user's program in the image (steps.in_image).
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
"""srun's variables for the same as the options that are taken out."""
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
        place = line.command.index(":") if ":" in line.command else len(line.command)
        command, words = line.command[:place], line.command[place + 1 :]
        options = [f"--{name}={value}" if value else f"--{name}" for name, value in line.own]
        options += _kept(line.options)
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


def _kept(options: Sequence[str]) -> list[str]:
    kept = []
    is_value = False
    for word in options:
        name = completed("srun", word[2:].partition("=")[0]) if word.startswith("--") else ""
        if not is_value and name not in _OPTIONS:
            kept.append(word)
        is_value = not is_value and name == _WITH_WORD and "=" not in word
    return kept


def _is_unnamed(line: CommandLine, environment: Mapping[str, str]) -> bool:
    """Whether Slurm would take the program's name; in a job SLURM_JOB_NAME names the job alone."""
    named = "SLURM_JOB_NAME" in environment and "SLURM_JOB_ID" not in environment
    return "job-name" not in line.values and not named


def _source(program: str, folder: str, environment: Mapping[str, str], root: str) -> str:
    """The file of a program, as srun finds it."""
    if "/" in program:
        places = [os.path.join(folder, program)]
    else:
        paths = environment.get("PATH", "").split(":")
        places = [os.path.join(folder, path, program) for path in paths if path]
    for place in places:
        if os.path.isfile(root + place):
            return root + place
    raise OptionError(f"--bcast: there is no file {program}")


def _target(value: str, line: CommandLine, folder: str, environment: Mapping[str, str]) -> str:
    """Where the copy is on each node; without a name it has one of its own in /tmp."""
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

    `on_start`: called in each new process, which else has this one's blocked signals.
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
        done = subprocess.run(
            words,
            env=dict(environment),
            stderr=subprocess.PIPE,
            check=False,
            preexec_fn=on_start,
        )
        if done.returncode != 0:
            lines = done.stderr.decode("utf-8", "backslashreplace").strip().splitlines()
            reason = lines[-1] if lines else f"sbcast ended with {done.returncode}"
            raise OptionError(f"--bcast: {reason}")
