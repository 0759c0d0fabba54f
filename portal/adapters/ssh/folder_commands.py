"""Commands for folders in a user's home, each a pair of argument list and output parser.

All run as the user with a POSIX shell and GNU find, sort and head. Names are separated by NULs,
since a folder's name may contain any other character.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection

from portal.adapters.ssh.shell.home import ENTER
from portal.adapters.ssh.transport import Completed
from portal.core.launch.mounts import Folder, storage_folder
from portal.node.common.folder_name import HOME

MAX_FOLDERS = 500
_STORAGE_FAILED, _FOLDER_FAILED = 3, 4
_SECONDS = 10
"""Timeout, so that a hanging file system does not delay pages for longer."""
DEADLINE = _SECONDS + 5.0
"""Timeout of the whole command, including the shell's start-up files."""
MOST_OUTPUT = 1024 * 1024
"""Bytes of the list; a name has at most 255 bytes."""


def shell(script: str) -> list[str]:
    """The arguments that run a POSIX shell script with a timeout."""
    command = ["env", "LC_ALL=C", "timeout", "--kill-after=2", str(_SECONDS)]
    return [*command, "/bin/sh", "-c", script]


def list_argv(storage: str) -> list[str]:
    """Print the home directory, the directory of storage folders, and the folders in it."""
    # Everything before the first NUL is output of start-up files.
    steps = (
        ENTER,
        r'printf "\0%s\0" "$PWD"',
        f"cd -- {shlex.quote(storage)} 2>/dev/null || exit 0",
        r'printf "%s\0" "$PWD"',
        r"find -L . -mindepth 1 -maxdepth 1 -type d -name '[!.]*' -printf '%f\0' 2>/dev/null "
        f"| sort -z | head -z -n {MAX_FOLDERS}",
    )
    return shell("\n".join(steps))


def list_parse(output: bytes) -> list[Folder]:
    """Parse the output of list_argv; [] if there is no home directory."""
    fields = [field.decode(errors="replace") for field in output.split(b"\0")[1:-1]]
    home = [Folder(HOME, fields[0])] if fields else []
    return home + [storage_folder(name, fields[1]) for name in fields[2:]]


def missing_argv(storage: str, names: Collection[str], file: str = "") -> list[str]:
    """Print the names that are not storage folders, and a file's path if it cannot be read.

    The path is below the storage folders, or absolute.
    """
    directory = shlex.quote(storage.rstrip("/"))
    steps = [ENTER, "printf '\\0'"]
    if names:
        steps.append(f"for name in {shlex.join(names)}; do")
        steps += [f'[ -d {directory}/"$name" ] || printf "%s\\0" "$name"', "done"]
    if file:
        path = shlex.quote(file if file.startswith("/") else f"{storage.rstrip('/')}/{file}")
        steps.append(f'[ -f {path} ] && [ -r {path} ] || printf "%s\\0" {shlex.quote(file)}')
    return shell("\n".join(steps))


def missing_parse(output: bytes) -> set[str]:
    """Parse the output of missing_argv."""
    return {name.decode(errors="replace") for name in output.split(b"\0")[1:-1]}


def make_argv(storage: str, name: str) -> list[str]:
    """Create a storage folder, and its parent if necessary; print the parent."""
    directory = shlex.quote(storage.rstrip("/"))
    steps = (
        ENTER,
        f"mkdir -p -- {directory} || exit {_STORAGE_FAILED}",
        f"[ -w {directory} ] && [ -x {directory} ] || "
        f"{{ echo 'mkdir: Permission denied' >&2; exit {_STORAGE_FAILED}; }}",
        f"mkdir -- {directory}/{shlex.quote(name)} || exit {_FOLDER_FAILED}",
        f"cd -- {directory} || exit 1",
        r'printf "\0%s\0" "$PWD"',
    )
    return shell("\n".join(steps))


def make_parse(output: bytes, name: str) -> Folder:
    """Parse the output of make_argv."""
    return storage_folder(name, output.split(b"\0")[1].decode(errors="replace"))


def make_refusal(result: Completed) -> str | None:
    """The reason why the name of a new folder is refused; None if it is accepted."""
    if result.code == _FOLDER_FAILED and "File exists" in result.stderr:
        return "you already have a folder or a file of this name"
    return None


def storage_problem(result: Completed, storage: str) -> str | None:
    """The reason why no folder can be created under any name, as a message for the user."""
    if result.code == _FOLDER_FAILED and make_refusal(result) is None:
        return f"The folder could not be created: {_reason(result)}."
    if result.code != _STORAGE_FAILED:
        return None
    reason = _reason(result)
    if reason in ("File exists", "Not a directory"):
        reason = "it is not a folder"
    return f"Your folder for storage, {storage}, cannot be used: {reason}."


def _reason(result: Completed) -> str:
    lines = result.stderr.strip().splitlines()
    return lines[-1].rpartition(": ")[2][:200] if lines else "no reason was given"
