"""Use and limit of a storage area, from the source that the site configures."""

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

    `settings`: by root "none", "df" (the default), "quota", "lfs", or a command of the site's, in
    whose words {user} and {path} are replaced. It is not run by a shell.
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
    """The whole file system; statvfs(2) blocks forever if its server is away."""
    results: list[os.statvfs_result] = []

    def ask() -> None:
        path = root.path
        while True:
            try:
                results.append(os.statvfs(path))
            except FileNotFoundError:  # the file system in which it would be created
                path = os.path.dirname(path)
            else:
                return

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(SECONDS)
    if not results:
        raise _no_answer()
    return of_statvfs(results[0])


def of_statvfs(fs: os.statvfs_result) -> Quota:
    """The figures of df: blocks that only root may use count neither as free nor as used."""
    used = (fs.f_blocks - fs.f_bfree) * fs.f_frsize
    limit = used + fs.f_bavail * fs.f_frsize
    if not fs.f_files:  # file systems without a fixed number
        return Quota("df", used, limit)
    files = fs.f_files - fs.f_ffree
    return Quota("df", used, limit, files, files + fs.f_favail)


def _quota(root: Root) -> Quota:
    output = _output(["quota", "-u", "-v", "-w", "-p", "--show-mntpoint", "--hide-device"])
    return parse_quota(output, os.path.realpath(root.path)) or Quota("none")


def parse_quota(output: str, path: str) -> Quota | None:
    """Parse quota(1): the line of the mount point that contains the path; None without one."""
    best: tuple[str, list[str]] | None = None
    for line in output.splitlines():
        match = re.fullmatch(r"\s*(/.*?)((?:\s+\d+\*?){8})\s*", line)
        if match is None:
            continue
        point = match[1]
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and (best is None or len(point) > len(best[0])):
            best = point, match[2].split()
    return _of_columns("quota", best[1]) if best else None


def _lfs(root: Root) -> Quota:
    user = pwd.getpwuid(os.geteuid()).pw_name
    return parse_lfs(_output(["lfs", "quota", "-q", "-u", user, root.path])) or Quota("none")


def parse_lfs(output: str) -> Quota | None:
    """Parse `lfs quota -q`, whose line is wrapped after a long path; None without figures."""
    words = output.split("\n\n", maxsplit=1)[0].split()
    for start in range(1, len(words) - 7):
        columns = words[start : start + 8]
        if all(_NUMBER.fullmatch(columns[index]) for index in (0, 1, 2, 4, 5, 6)):
            return _of_columns("lfs", columns)
    return None


_NUMBER = re.compile(r"\[?(\d+)\]?\*?")


def _of_columns(source: str, columns: Sequence[str]) -> Quota:
    """Columns: KiB used, soft limit, hard limit, grace; the same for files. 0 means no limit."""
    matches = [_NUMBER.fullmatch(column) for column in columns]
    used, soft, hard, _, files, files_soft, files_hard, _ = (
        int(match[1]) if match else 0 for match in matches
    )
    limit = (hard or soft) * KIB or None
    return Quota(source, used * KIB, limit, files, (files_hard or files_soft) or None)


def _site(root: Root, command: Sequence[str]) -> Quota:
    user = pwd.getpwuid(os.geteuid()).pw_name
    words = [word.replace("{user}", user).replace("{path}", root.path) for word in command]
    return parse_site(_output(words))


def parse_site(output: str) -> Quota:
    """Parse "used limit [files files_limit]", in bytes; limits "-" and 0 mean no limit."""
    words = output.split()
    if len(words) not in (2, 4) or not all(re.fullmatch(r"\d{1,19}|-", word) for word in words):
        raise Refused(502, "quota", "The site's command for quota printed something unexpected.")
    numbers = [None if word == "-" else int(word) for word in (*words, "-", "-")[:4]]
    return Quota("site", numbers[0], numbers[1] or None, numbers[2], numbers[3] or None)


def _output(command: Sequence[str]) -> str:
    """The output of a command; its status is ignored, since quota(1) fails above a limit."""
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
    output: list[bytes] = []
    reading = threading.Thread(target=_read, args=(running, output), daemon=True)
    reading.start()
    reading.join(SECONDS)
    late = reading.is_alive()  # before _end(), after which the read returns
    _end(running)
    if late or not output:
        raise _no_answer()
    return output[0].decode(errors="replace")


def _read(running: subprocess.Popen[bytes], output: list[bytes]) -> None:
    assert running.stdout is not None  # noqa: S101  # it is a pipe
    with running.stdout as stream:
        output.append(stream.read(MOST_OUTPUT))


def _end(running: subprocess.Popen[bytes]) -> None:
    """Kill the command and its children; does not wait if a file system blocks them."""
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
