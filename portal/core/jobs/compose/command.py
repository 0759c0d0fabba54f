"""The command that submits a job: its arguments, and its text for a shell."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from portal.core.jobs.compose.submission import JobRequest
from portal.core.jobs.tasks import count_tasks
from portal.core.units import format_size

HOME = '"$HOME"'
"""The home directory in words where a shell does not expand "~"."""

STDIN = "/dev/stdin"
"""Standard input as a file name: sbatch takes arguments only after the name of a script."""

OPTION_OF: Mapping[str, str] = MappingProxyType(
    {
        "name": "job-name",
        "image": "image",
        "resource_group": "partition",
        "account": "account",
        "qos": "qos",
        "reservation": "reservation",
        "constraint": "constraint",
        "resources.nodes": "nodes",
        "resources.tasks": "ntasks",
        "resources.cpus": "cpus-per-task",
        "resources.memory": "mem",
        "resources.shared_memory": "shm",
        "resources.fgpu": "fgpu",
        "resources.gpu_kind": "gpu-kind",
        "time_limit": "time",
        "array": "array",
    }
)
"""The option for each field with one value, in the order of the command line."""


@dataclass(frozen=True)
class SubmitCommand:
    """The command to run on the login node; paths may begin with "~"."""

    arguments: tuple[str, ...]
    """Arguments of `slipway sbatch`, without --chdir and the script."""
    script: str | None
    """The script for standard input; None if a file is submitted."""
    file: str = ""
    """The name of the file in `folder`."""
    folder: str = "~"
    """The working directory of the command."""
    directory: str = ""
    """The value of --chdir; without it, the script's directives or `folder` apply."""
    script_arguments: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The arguments of `slipway sbatch`, without --chdir."""
        return (*self.arguments, *self._script_words())

    def _script_words(self) -> tuple[str, ...]:
        if self.script is None:
            return (f"./{self.file}", *self.script_arguments)
        return (STDIN, *self.script_arguments) if self.script_arguments else ()


_BEGIN = re.compile(r"(^|\s)(--begin(=|\s)|-b)", re.ASCII)


def names_begin(options: Iterable[str], script: str) -> bool:
    """Whether typed options or the script's directives contain --begin."""
    directives = (line for line in script.split("\n") if line.startswith("#SBATCH"))
    return any(_BEGIN.search(text) for text in (" ".join(options), *directives))


_ARRAY = re.compile(r"(?:^|\s)(?:--array(?:=|\s+)|-a\s*)([0-9][0-9,:%-]*)", re.ASCII)


def tasks_of(request: JobRequest, script: str) -> int:
    """The number of an array's tasks, by options, field or directives; 0 for other jobs."""
    directives = (line for line in script.split("\n") if line.startswith("#SBATCH"))
    places = (" ".join(request.options), f"--array={request.array or ''}", "\n".join(directives))
    arrays = next(filter(None, map(_ARRAY.findall, places)), [])
    return count_tasks(arrays[-1]) if arrays else 0


def submit_command(request: JobRequest) -> SubmitCommand:
    """The command that submits a request.

    A file is submitted from its folder, so that the job runs there, as after `cd`. Typed options
    come last, since sbatch uses the last of several options with one name.
    """
    options = [f"--{name}={value}" for name, value in _options(request)]
    arguments = (*options, *request.options)
    directory = request.directory or ""
    if request.path is None:
        return SubmitCommand(
            arguments, request.script, directory=directory, script_arguments=request.args
        )
    folder, _, file = request.path.rpartition("/")
    return SubmitCommand(arguments, None, file, folder or "/", directory, request.args)


def _options(request: JobRequest) -> Iterator[tuple[str, str]]:
    for field, option in OPTION_OF.items():
        value = field_value(request, field)
        if value is not None:
            yield option, _written(field, value)
    for mount in request.mounts:
        # The name of a folder may itself end like a mode.
        ambiguous = mount.folder.endswith((":ro", ":rw"))
        mode = ":ro" if mount.read_only else ":rw" if ambiguous else ""
        yield "mount", f"{mount.folder}{mode}"


def field_value(request: JobRequest, field: str) -> object:
    """The value of a field such as "resources.cpus"; None if the request has none."""
    group, _, name = field.rpartition(".")
    value = getattr(getattr(request, group) if group else request, name, None)
    return None if value in ("", ()) else value


def _written(field: str, value: object) -> str:
    if field == "resources.memory" and isinstance(value, int):
        return format_size(value).upper()
    if field == "resources.shared_memory" and isinstance(value, int):
        return format_size(value)
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def shell_text(command: SubmitCommand) -> str:
    """The command for a shell in any directory, with the script as a here-document."""
    words = ["slipway", "sbatch", *map(shlex.quote, command.words)]
    if command.directory:
        words.insert(2, f"--chdir={_quoted_path(command.directory, HOME)}")
    start = f"cd {_quoted_path(command.folder, '~')} && "
    if command.script is None:
        return start + " ".join(words)
    end = _delimiter(command.script)
    body = command.script if command.script.endswith("\n") else f"{command.script}\n"
    return f"{start}{' '.join(words)} <<'{end}'\n{body}{end}"


def _quoted_path(path: str, home: str) -> str:
    """Quote a path for a shell; `home` replaces a leading "~"."""
    if path == "~":
        return home
    return f"{home}/{shlex.quote(path[2:])}" if path.startswith("~/") else shlex.quote(path)


def _delimiter(script: str) -> str:
    """A here-document delimiter that does not occur as a line of the script."""
    lines = set(script.split("\n"))
    if "EOF" not in lines:
        return "EOF"
    return f"EOF-{hashlib.sha256(script.encode()).hexdigest()[:24]}"
