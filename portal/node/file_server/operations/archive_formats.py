"""Formats of archives, by the file name extension."""

from __future__ import annotations

import importlib.util
import re
import subprocess

from portal.node.file_server.errors import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ZIP, TAR, GZIP, BZIP2, XZ, ZSTD = "zip", "tar", "gzip", "bzip2", "xz", "zstd"
_ENDINGS: Mapping[bytes, str] = {
    b".zip": ZIP,
    b".tar": TAR,
    **dict.fromkeys((b".tar.gz", b".tgz"), GZIP),
    **dict.fromkeys((b".tar.bz2", b".tbz2", b".tbz"), BZIP2),
    **dict.fromkeys((b".tar.xz", b".txz"), XZ),
    **dict.fromkeys((b".tar.zst", b".tzst"), ZSTD),
}
_ENDING = re.compile(
    rb"(" + b"|".join(map(re.escape, sorted(_ENDINGS, key=len, reverse=True))) + rb")\Z",
    re.IGNORECASE,
)
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
SECONDS = 5.0


def format_of(name: bytes) -> str:
    """The format of an archive; raises Refused if it has no known extension."""
    ending = _ENDING.search(name)
    if ending is None:
        detail = "This is not a zip file or a tar file (plain, gz, bz2, xz or zst) by its name."
        raise Refused(409, "format", detail)
    return _ENDINGS[ending[0].lower()]


def folder_name(name: bytes) -> bytes:
    """The name of the folder that an archive is unpacked to: its own without the extension."""
    stem = _ENDING.sub(b"", name)
    return b"archive" if stem in (b"", b".", b"..") else stem


def check_available(format: str) -> None:
    """Raise Refused if this host cannot read a format."""
    if format != ZSTD or has_zstd_module():
        return
    command = ("zstd", "--version")
    try:
        subprocess.run(command, env=ENVIRONMENT, capture_output=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        detail = (
            "The file server's host cannot read zst: it has neither the program zstd nor "
            "Python 3.14. Ask the administrators to install zstd."
        )
        raise Refused(409, "format", detail) from None


def has_zstd_module() -> bool:
    """Whether this Python reads zst itself (since 3.14)."""
    try:
        return importlib.util.find_spec("compression.zstd") is not None
    except ModuleNotFoundError:
        return False
