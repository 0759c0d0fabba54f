"""The command that lists a user's image files, and its output parser, as in folder_commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from portal.adapters.ssh.folder_commands import shell
from portal.adapters.ssh.shell.home import ENTER
from portal.core.launch.own_image import MOST_FILES, SUFFIX, ImageFile

_FIND_SECONDS = 4
"""Timeout for the user's folders, and for the site's; files found until then are shown."""
_DEPTH = 4
_READ = 1000
"""Maximum number of files that are compared; the newest are shown."""


def list_argv(storage: str, folders: Sequence[str]) -> list[str]:
    """Print the newest image files in the storage folders, and in the site's folders."""
    # The slash makes find enter a storage folder that is a link. Links in it may lead elsewhere,
    # so they are not followed.
    site = " ".join(shlex.quote(folder.rstrip("/") + "/") for folder in folders)
    steps = [
        ENTER,
        r'printf "\0"',
        f"cd -- {shlex.quote(storage)} 2>/dev/null && {{ printf '%s\\0' \"$PWD\"; "
        f"{_find('./[!.]*/')}; }}",
        r'printf "\0"',
        *([_find(site)] if folders else []),
        "exit 0",
    ]
    return shell("\n".join(steps))


def _find(folders: str) -> str:
    tests = f"-maxdepth {_DEPTH} -type f -name '[!.]*{SUFFIX}' -readable"
    return (
        f"timeout --kill-after=1 {_FIND_SECONDS} find {folders} {tests} "
        r"-printf '%T@ %s %p\0' 2>/dev/null "
        f"| head -z -n {_READ} | sort -z -rn | head -z -n {MOST_FILES}"
    )


def list_parse(output: bytes) -> list[ImageFile]:
    """Parse the output of list_argv: the user's files, then the site's, each newest first."""
    fields = [field.decode(errors="replace") for field in output.split(b"\0")[1:-1]]
    if "" not in fields:
        return []
    end = fields.index("")
    base, user_files, site_files = fields[:1], fields[1:end], fields[end + 1 :]
    files = [_file(text, base[0]) for text in user_files] + [_file(text, "") for text in site_files]
    return [file for file in files if file is not None]


def _file(text: str, base: str) -> ImageFile | None:
    _, _, size_and_path = text.partition(" ")
    size, _, path = size_and_path.partition(" ")
    if not size.isdigit():
        return None
    name = path.removeprefix("./") if base else path
    return ImageFile(name=name, path=f"{base}/{name}" if base else path, size=int(size))
