"""The request for submitting a job again, from Slurm's record of the first job."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from portal.core.jobs.compose.drafts import Submission
from portal.core.jobs.compose.submission import parse_job
from portal.core.jobs.compose.wrapped import WrappedJob, unwrap
from portal.core.jobs.job import Job, JobTexts
from portal.core.units import format_size
from portal.errors import InvalidRequest

_TOLERANCE = timedelta(days=1)
MOST_BLANKS = 8
"""Blanks of a command that are tried as the end of its path."""
_GPU_OPTIONS = ("--gres", "--gpus", "--fgpu", "-G")


def _never(_path: str) -> bool:
    return False


@dataclass(frozen=True)
class StoredJob:
    """Data that Slurm stores of a job beside its record."""

    script: bytes = b""
    """The submitted script; empty if Slurm does not return it."""
    is_in: Callable[[str], bool] = field(default=_never)
    """Tells whether the user's file at a path has this text."""
    site_folders: Collection[str] = ()
    """Folders that are mounted in every image."""


def is_submission_of(job: Job, submission: Submission) -> bool:
    """Whether the times match: after a long time, Slurm uses its job ids again."""
    submitted = job.report.submitted
    return submitted is None or abs(submitted - submission.created) < _TOLERANCE


def same_job(job: Job, stored: StoredJob) -> dict[str, Any]:
    """The body of a request for the same job, from Slurm's data."""
    return _valid(_fields(job, stored))


def _fields(job: Job, stored: StoredJob) -> dict[str, Any]:
    """The fields in Slurm's data; the script's #SBATCH lines have the others."""
    report, texts = job.report, job.texts
    body: dict[str, Any] = {
        "name": texts.name,
        "resource_group": report.partition,
        "account": report.account,
        "qos": report.qos,
        "directory": texts.directory,
        "time_limit": report.time_limit,
        "array": job.tasks if job.array_id else "",
    }
    wrapped = unwrap(stored.script, stored.site_folders)
    path, args = _split_command(texts, _never if wrapped else stored.is_in)
    if path.startswith("/") and not path.startswith(("/dev/", "/proc/")) and not wrapped:
        body |= {"path": path, "args": args}
    else:
        body |= _with_script(job, wrapped or WrappedJob(stored.script)) | {"args": args}
    return {name: value for name, value in body.items() if value}


def _split_command(texts: JobTexts, is_in: Callable[[str], bool]) -> tuple[str, list[str]]:
    """Split a command, as Slurm prints it, into path and arguments, which may all contain blanks.

    The path ends where its last part is the job's name, sbatch's default. Otherwise it is the one
    of a file with the script's text, otherwise it ends at the first blank.
    """
    splits = list(_splits(texts.command))
    by_name = (split for split in splits if split[0].rpartition("/")[2] == texts.name)
    by_text = (split for split in splits if len(splits) > 1 and is_in(split[0]))
    path, arguments = next(by_name, None) or next(by_text, None) or splits[0]
    return path, [word for word in arguments.split(" ") if word]


def _splits(command: str) -> Iterator[tuple[str, str]]:
    words = command.split(" ")
    for count in range(1, min(len(words), MOST_BLANKS) + 1):
        yield " ".join(words[:count]), " ".join(words[count:])


def _with_script(job: Job, wrapped: WrappedJob) -> dict[str, Any]:
    """The script, and options of the command line as far as the record has them."""
    report = job.report
    script = wrapped.script.decode("utf-8", "replace")
    resources: dict[str, Any] = {"shared_memory": wrapped.shared_memory}
    options = list(wrapped.options)
    if len(report.nodes) <= 1:
        memory = format_size(report.memory_mb) if report.memory_mb else None
        resources |= {"cpus": report.cpus or None, "memory": memory}
        if not any(option in script for option in _GPU_OPTIONS):
            options += _gpus(report.shards, report.gpus)
    return {
        "script": script if "\ufffd" not in script else "",
        "image": wrapped.image,
        "mounts": wrapped.mounts,
        "options": options,
        "resources": {name: value for name, value in resources.items() if value},
    }


def _gpus(shards: int, gpus: int) -> list[str]:
    if shards:
        return [f"--gres=shard:{shards}"]
    return [f"--gres=gpu:{gpus}"] if gpus else []


def _valid(body: dict[str, Any]) -> dict[str, Any]:
    """The body without fields that a request does not permit."""
    filled = body if "path" in body or "script" in body else body | {"script": "#!/bin/sh\n"}
    try:
        parse_job(filled)
    except InvalidRequest as error:
        invalid = {problem.field.partition(".")[0] for problem in error.errors}
        return {name: value for name, value in body.items() if name not in invalid}
    return body
