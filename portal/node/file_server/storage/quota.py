"""How much is used of a storage area, and how much may be: asked in the way that the site sets."""

from __future__ import annotations

import os
import pwd
import re
import shlex
import signal
import subprocess
import threading
from dataclasses import asdict, dataclass

from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from portal.node.file_server.roots import Root

SECONDS = 5.0
KIB = 1024
MOST_OUTPUT = 64 * 1024
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin",
    "LC_ALL": "C",
}


@dataclass(frozen=True)
class Quota:
    """Bytes and numbers of files; None where there is no limit or it is unknown."""

    source: str
    used: int | None = None
    limit: int | None = None
    files: int | None = None
    files_limit: int | None = None


def quota_of(root: Root, settings: Mapping[str, str]) -> dict[str, Any]:
    """The quota of a root; raises Refused if the file system or the command does not answer.

    `settings`: by root "none", "df" (also for roots that are not named), "quota", "lfs", or a
    command of the site's, in whose words {user} and {path} are replaced. No shell reads it.
    """
    source = settings.get(root.name, "df")
    ask = _SOURCES.get(source)
    if ask is not None:
        return asdict(ask(root))
    try:
        words = shlex.split(source)
    except ValueError:
        words = []
    if not words:
        raise Refused(502, "quota", f"The site's command for quota, {source!r}, cannot be read.")
    return asdict(_site(root, words))


def _none(_root: Root) -> Quota:
    return Quota("none")


def _df(root: Root) -> Quota:
    """The whole file system; statvfs(2) waits for ever if its server is away."""
    found: list[os.statvfs_result] = []
    asking = threading.Thread(target=lambda: found.append(os.statvfs(root.path)), daemon=True)
    asking.start()
    asking.join(SECONDS)
    if not found:
        raise _no_answer()
    return of_statvfs(found[0])


def of_statvfs(found: os.statvfs_result) -> Quota:
    """What df shows: blocks that only root may use count neither as free nor as used."""
    used = (found.f_blocks - found.f_bfree) * found.f_frsize
    limit = used + found.f_bavail * found.f_frsize
    if not found.f_files:  # file systems without a fixed number
        return Quota("df", used, limit)
    files = found.f_files - found.f_ffree
    return Quota("df", used, limit, files, files + found.f_favail)


def _quota(root: Root) -> Quota:
    output = _output(["quota", "-u", "-v", "-w", "-p", "--show-mntpoint", "--hide-device"])
    return parse_quota(output, os.path.realpath(root.path)) or Quota("none")


def parse_quota(output: str, path: str) -> Quota | None:
    """Read quota(1): the line of the mount point that contains the path; None without one."""
    best: tuple[str, list[str]] | None = None
    for line in output.splitlines():
        found = re.fullmatch(r"\s*(/.*?)((?:\s+\d+\*?){8})\s*", line)
        if found is None:
            continue
        point = found[1]
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and (best is None or len(point) > len(best[0])):
            best = point, found[2].split()
    return _of_columns("quota", best[1]) if best else None


def _lfs(root: Root) -> Quota:
    user = pwd.getpwuid(os.geteuid()).pw_name
    return parse_lfs(_output(["lfs", "quota", "-q", "-u", user, root.path])) or Quota("none")


def parse_lfs(output: str) -> Quota | None:
    """Read `lfs quota -q`, whose line is wrapped after a long path; None if it says nothing."""
    words = output.split("\n\n", maxsplit=1)[0].split()
    for place in range(1, len(words) - 7):
        columns = words[place : place + 8]
        if all(_NUMBER.fullmatch(columns[index]) for index in (0, 1, 2, 4, 5, 6)):
            return _of_columns("lfs", columns)
    return None


_NUMBER = re.compile(r"\[?(\d+)\]?\*?")


def _of_columns(source: str, columns: Sequence[str]) -> Quota:
    """KiB used, soft limit, hard limit, grace; the same for files. 0 is no limit."""
    found = [_NUMBER.fullmatch(column) for column in columns]
    used, soft, hard, _, files, files_soft, files_hard, _ = (
        int(one[1]) if one else 0 for one in found
    )
    limit = (hard or soft) * KIB or None
    return Quota(source, used * KIB, limit, files, (files_hard or files_soft) or None)


def _site(root: Root, command: Sequence[str]) -> Quota:
    user = pwd.getpwuid(os.geteuid()).pw_name
    words = [word.replace("{user}", user).replace("{path}", root.path) for word in command]
    return parse_site(_output(words))


def parse_site(output: str) -> Quota:
    """Read "used limit [files files_limit]", in bytes; "-" and 0 as a limit stand for none."""
    words = output.split()
    if len(words) not in (2, 4) or not all(re.fullmatch(r"\d{1,19}|-", word) for word in words):
        raise Refused(502, "quota", "The site's command for quota printed something unexpected.")
    numbers = [None if word == "-" else int(word) for word in (*words, "-", "-")[:4]]
    return Quota("site", numbers[0], numbers[1] or None, numbers[2], numbers[3] or None)


def _output(command: Sequence[str]) -> str:
    """What a command prints; its status counts for nothing, since quota(1) fails above a limit."""
    try:
        running = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            start_new_session=True,
        )
    except OSError:
        raise Refused(
            502, "quota", f"The command {command[0]} for quota cannot be started on this host."
        ) from None
    found: list[bytes] = []
    reading = threading.Thread(target=_read, args=(running, found), daemon=True)
    reading.start()
    reading.join(SECONDS)
    late = reading.is_alive()  # before its end, after which it has read nothing
    _end(running)
    if late or not found:
        raise _no_answer()
    return found[0].decode(errors="replace")


def _read(running: subprocess.Popen[bytes], found: list[bytes]) -> None:
    assert running.stdout is not None  # noqa: S101  # it is a pipe
    with running.stdout as stream:
        found.append(stream.read(MOST_OUTPUT))


def _end(running: subprocess.Popen[bytes]) -> None:
    """End the command and what it has started; not waiting where a file system holds it up."""
    try:
        running.wait(0.2)
    except subprocess.TimeoutExpired:
        try:
            os.killpg(running.pid, signal.SIGKILL)
        except OSError:
            return
        threading.Thread(target=running.wait, daemon=True).start()


def _no_answer() -> Refused:
    return Refused(
        503, "away", "The quota is not known: there is no answer. Try again in a minute."
    )


_SOURCES: Mapping[str, Callable[[Root], Quota]] = {
    "none": _none,
    "df": _df,
    "quota": _quota,
    "lfs": _lfs,
}
