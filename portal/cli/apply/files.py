"""Files rendered from the settings: differences, and their replacement."""

from __future__ import annotations

import difflib
import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from portal.cli.render import haproxy_config, systemd_units
from portal.config import Settings

_MOST_LINES = 100
_MOST_CHARACTERS = 300


@dataclass(frozen=True)
class RenderedFile:
    """A file's current text, and its text according to the settings."""

    path: Path
    text: str
    before: str | None
    """None: there is no file yet."""

    @property
    def differs(self) -> bool:
        """Whether it has to be written."""
        return self.text != self.before

    def diff(self) -> Iterator[str]:
        """The differences as a unified diff of limited length."""
        if self.before is None:
            yield f"{self.path}: new"
            return
        lines = list(
            difflib.unified_diff(
                self.before.splitlines(),
                self.text.splitlines(),
                str(self.path),
                str(self.path),
                "(as it is)",
                "(as it will be)",
                lineterm="",
                n=1,
            )
        )
        lines = list(_without_repeats(map(_shortened, lines)))
        yield from lines[:_MOST_LINES]
        if len(lines) > _MOST_LINES:
            yield f"… {len(lines) - _MOST_LINES} more lines"

    def write(self) -> None:
        """Replace the file, keeping a copy of the previous one; raises OSError."""
        if self.before is not None:
            _replace(self.path.with_name(f"{self.path.name}.previous"), self.before, self.path)
        _replace(self.path, self.text, self.path)

    def undo(self) -> None:
        """Restore the previous text; raises OSError."""
        if self.before is None:
            self.path.unlink(missing_ok=True)
        else:
            _replace(self.path, self.before, self.path)


def _shortened(line: str) -> str:
    """Truncate a line: some lines of HAProxy's configuration are complete pages."""
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}…"


def _without_repeats(lines: Iterable[str]) -> Iterator[str]:
    """Drop repeated lines and empty hunks: all backends have the same error pages."""
    printed: set[str] = set()
    header = ""
    for line in lines:
        if line.startswith("@@"):
            header = line
        elif line not in printed:
            if header:
                yield header
                header = ""
            printed.add(line)
            yield line


def rendered_files(settings: Settings) -> list[RenderedFile]:
    """HAProxy's configuration, and the units that are installed; raises OSError."""
    service = settings.service
    texts = {Path(service.haproxy_config): haproxy_config(settings)}
    if service.supervisor == "systemd":
        units = {Path(service.units) / name: text for name, text in systemd_units(settings).items()}
        texts |= {path: text for path, text in units.items() if path.exists()}
    return [RenderedFile(path, text, _read(path)) for path, text in texts.items()]


def _read(path: Path) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno != errno.ELOOP or not _is_ours(path.parent.lstat()):
            raise  # another account's link, possibly to a file that only root may read
        return path.read_text(encoding="utf-8")
    with open(descriptor, encoding="utf-8") as stream:
        return stream.read()


def _is_ours(folder: os.stat_result) -> bool:
    return folder.st_uid == os.geteuid() and not folder.st_mode & 0o022


def _replace(path: Path, text: str, like: Path) -> None:
    """Write a public file atomically, with the owner of `like`."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    # Never follows a link: root may write into another account's folder.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            _copy_owner(stream.fileno(), like)
            os.fsync(stream.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _copy_owner(descriptor: int, like: Path) -> None:
    os.fchmod(descriptor, 0o644)  # independent of the umask
    try:
        status = like.lstat()
    except FileNotFoundError:
        return
    if os.geteuid() == 0:
        os.fchown(descriptor, status.st_uid, status.st_gid)
