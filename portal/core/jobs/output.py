"""The output files of a job: their streams and paths, and their states in words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from portal.core.jobs.job import Job, JobTab
from portal.errors import clip, visible

LONGEST_PATH = 4096
"""Bytes of a path (PATH_MAX)."""
NOWHERE = "/dev/null"


class Stream(StrEnum):
    """An output stream of a job."""

    STDOUT = "stdout"
    STDERR = "stderr"


TITLES = {Stream.STDOUT: "Output", Stream.STDERR: "Errors"}


class FileState(StrEnum):
    """The state of a path on the login node."""

    REGULAR = "regular"
    MISSING = "missing"
    FOLDER = "folder"
    SPECIAL = "special"
    """A FIFO, a socket or a device."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True)
class FilePiece:
    """A piece of a file, read with its user's permissions."""

    data: bytes = b""
    offset: int = 0
    """Start of the piece, in bytes."""
    size: int = 0
    """Size of the file at the time of reading."""
    state: FileState = FileState.REGULAR
    why: str = ""
    """The login node's error message for a file that cannot be read."""


@dataclass(frozen=True)
class Reading:
    """The last time that an administrator read a job's output."""

    by: str
    at: datetime


def streams_of(job: Job) -> list[Stream]:
    """The streams with separate files; [] while Slurm has reported none."""
    streams = [Stream.STDOUT] if job.texts.stdout else []
    if job.texts.stderr and job.texts.stderr != job.texts.stdout:
        streams.append(Stream.STDERR)
    return streams


def title_of(job: Job, stream: Stream) -> str:
    """The title of a stream, or of both if they share a file."""
    both = stream is Stream.STDOUT and job.texts.stderr == job.texts.stdout
    return "Output and errors" if both else TITLES[stream]


def path_of(job: Job, stream: Stream) -> str:
    """The path of a stream's file, as Slurm reports it; "" if it is unknown."""
    texts = job.texts
    return texts.stdout if stream is Stream.STDOUT or not texts.stderr else texts.stderr


def why_no_path(path: str) -> str:
    """Why a path cannot be opened at all, in words; "" if it can."""
    if not path:
        return "Slurm does not tell where this job writes, so there is nothing to show."
    if path == NOWHERE:
        return "The job throws this output away: it writes to /dev/null."
    try:
        length = len(path.encode())
    except UnicodeEncodeError:
        return "The name of the file is not valid UTF-8, so it cannot be opened here."
    if not path.startswith("/") or "\0" in path or length > LONGEST_PATH:
        return "Slurm tells no usable path for this output, so there is nothing to show."
    return ""


def why_unread(job: Job, path: str, piece: FilePiece) -> str:
    """Why a file was not read, in words; "" if it was, or if it may still be written."""
    shown = visible(clip(path, 200))
    match piece.state:
        case FileState.REGULAR:
            return ""
        case FileState.FOLDER:
            return f"{shown} is a folder, so there is no output to show."
        case FileState.SPECIAL:
            return f"{shown} is a device or a pipe, not a file; it is not read."
        case FileState.UNREADABLE:
            why = visible(piece.why)
            return f"{shown} cannot be read by {job.report.user} on the login node: {why}."
    if job.tab is not JobTab.ENDED and not job.gone:
        return ""
    if "\ufffd" in path:
        return f"{shown} is not there under this name, which may not be valid UTF-8."
    if job.report.start is None:
        return f"The job never started, so it did not write {shown}."
    return (
        f"{shown} is not on the login node: it was deleted or moved, or it is in a folder that "
        "only the compute node has."
    )
