"""The command that lists a user's image files, and its output's parser; as in folder_commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from portal.adapters.ssh.folder_commands import shell
from portal.adapters.ssh.shell.home import ENTER
from portal.core.launch.own_image import MOST_FILES, SUFFIX, ImageFile

_FIND_SECONDS = 4
"""For the user's folders, and for the site's; what was found until then is shown."""
_DEPTH = 4
_READ = 1000
"""Files of which the newest are shown."""


def list_argv(storage: str, places: Sequence[str]) -> list[str]:
    """The newest image files in the storage folders, and in the site's folders."""
    # The slash: a storage folder may be a link, but links in it may lead out of it.
    site = " ".join(shlex.quote(place.rstrip("/") + "/") for place in places)
    steps = [
        ENTER,
        r'printf "\0"',
        f"cd -- {shlex.quote(storage)} 2>/dev/null && {{ printf '%s\\0' \"$PWD\"; "
        f"{_find('./[!.]*/')}; }}",
        r'printf "\0"',
        *([_find(site)] if places else []),
        "exit 0",
    ]
    return shell("\n".join(steps))


def _find(where: str) -> str:
    what = f"-maxdepth {_DEPTH} -type f -name '[!.]*{SUFFIX}' -readable"
    return (
        f"timeout --kill-after=1 {_FIND_SECONDS} find {where} {what} "
        r"-printf '%T@ %s %p\0' 2>/dev/null "
        f"| head -z -n {_READ} | sort -z -rn | head -z -n {MOST_FILES}"
    )


def list_parse(output: bytes) -> list[ImageFile]:
    """Parse the output of list_argv: first the user's own files, each the newest first."""
    fields = [field.decode(errors="replace") for field in output.split(b"\0")[1:-1]]
    if "" not in fields:
        return []
    end = fields.index("")
    base, own, site = fields[:1], fields[1:end], fields[end + 1 :]
    found = [_file(text, base[0]) for text in own] + [_file(text, "") for text in site]
    return [file for file in found if file is not None]


def _file(text: str, base: str) -> ImageFile | None:
    _, _, rest = text.partition(" ")
    size, _, path = rest.partition(" ")
    if not size.isdigit():
        return None
    name = path.removeprefix("./") if base else path
    return ImageFile(name=name, path=f"{base}/{name}" if base else path, size=int(size))
