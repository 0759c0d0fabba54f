"""The output files of a job, and what is said of one that is not there."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from portal.core.cluster.job_reports import JobReport, JobState
from portal.core.jobs.job import Job, JobTexts
from portal.core.jobs.output import (
    FilePiece,
    FileState,
    Stream,
    path_of,
    streams_of,
    title_of,
    why_no_path,
    why_unread,
)

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


def job(state: JobState = JobState.RUNNING, out: str = "/x/o", err: str = "/x/e") -> Job:
    report = JobReport("7", "alice", state, start=NOON)
    return Job(report, texts=JobTexts(stdout=out, stderr=err))


@pytest.mark.parametrize(
    ("out", "err", "streams", "title", "errors"),
    [
        ("", "", [], "Output", ""),
        ("/x/o", "", [Stream.STDOUT], "Output", "/x/o"),
        ("/x/o", "/x/o", [Stream.STDOUT], "Output and errors", "/x/o"),
        ("/x/o", "/x/e", [Stream.STDOUT, Stream.STDERR], "Output", "/x/e"),
    ],
)
def test_streams(out: str, err: str, streams: list[Stream], title: str, errors: str) -> None:
    found = job(out=out, err=err)
    assert streams_of(found) == streams
    assert title_of(found, Stream.STDOUT) == (title if out else "Output and errors")
    assert path_of(found, Stream.STDERR) == errors


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/x/o", ""),
        ("/x/\n'o\"", ""),
        ("", "does not tell where"),
        ("/dev/null", "throws this output away"),
        ("relative", "no usable path"),
        ("/x\0y", "no usable path"),
        ("/" + "ö" * 2048, "no usable path"),
        ("/x\udcff", "not valid UTF-8"),
    ],
)
def test_paths_that_cannot_be_opened(path: str, words: str) -> None:
    assert words in why_no_path(path)
    assert bool(words) == bool(why_no_path(path))


def test_a_file_that_is_missing_may_still_be_written() -> None:
    missing = FilePiece(state=FileState.MISSING)
    assert why_unread(job(), "/x/o", missing) == ""
    assert why_unread(job(JobState.PENDING), "/x/o", missing) == ""
    assert "was deleted or moved" in why_unread(job(JobState.FAILED), "/x/o", missing)
    assert "may not be valid UTF-8" in why_unread(job(JobState.FAILED), "/x/\ufffd", missing)


def test_what_is_in_the_place_of_the_file() -> None:
    def words(state: FileState, why: str = "") -> str:
        return why_unread(job(), "/x/o", FilePiece(state=state, why=why))

    assert words(FileState.REGULAR) == ""
    assert words(FileState.FOLDER) == "/x/o is a folder, so there is no output to show."
    assert words(FileState.SPECIAL) == "/x/o is a device or a pipe, not a file; it is not read."
    assert why_unread(job(), "/\u202ecod.exe\n", FilePiece(state=FileState.FOLDER)) == (
        "/\ufffdcod.exe\ufffd is a folder, so there is no output to show."
    )
    assert words(FileState.UNREADABLE, "Permission denied") == (
        "/x/o cannot be read by alice on the login node: Permission denied."
    )
