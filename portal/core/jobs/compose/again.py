"""A job that is submitted again: what is known of the first one."""

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
"""Of a command, whose path may end at each of them."""
_GPU_OPTIONS = ("--gres", "--gpus", "--fgpu", "-G")


def _never(_path: str) -> bool:
    return False


@dataclass(frozen=True)
class Stored:
    """What Slurm stores of a job besides its record."""

    script: bytes = b""
    """The text that was submitted; empty if Slurm does not tell it."""
    is_in: Callable[[str], bool] = field(default=_never)
    """Whether a file of the user's has this text."""
    site_folders: Collection[str] = ()
    """Folders that are mounted in every image."""


def is_of(job: Job, submission: Submission) -> bool:
    """Whether they belong together: Slurm uses its numbers again after a long time."""
    submitted = job.report.submitted
    return submitted is None or abs(submitted - submission.created) < _TOLERANCE


def same_job(job: Job, stored: Stored) -> dict[str, Any]:
    """The body of a request for the same job, as Slurm tells it."""
    return _valid(_known(job, stored))


def _known(job: Job, stored: Stored) -> dict[str, Any]:
    """What Slurm tells: with the script, its #SBATCH lines say the rest."""
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
    path, args = _divided(texts, _never if wrapped else stored.is_in)
    if path.startswith("/") and not path.startswith(("/dev/", "/proc/")) and not wrapped:
        body |= {"path": path, "args": args}
    else:
        body |= _with_script(job, wrapped or WrappedJob(stored.script)) | {"args": args}
    return {name: value for name, value in body.items() if value}


def _divided(texts: JobTexts, is_in: Callable[[str], bool]) -> tuple[str, list[str]]:
    """A command's path and arguments, between which Slurm writes blanks, which both may have.

    The job is named after the file if nothing else was asked for; otherwise the file that has the
    script's text tells them apart, and at last the first blank.
    """
    places = list(_places(texts.command))
    named = (found for found in places if found[0].rpartition("/")[2] == texts.name)
    holding = (found for found in places if len(places) > 1 and is_in(found[0]))
    path, rest = next(named, None) or next(holding, None) or places[0]
    return path, [word for word in rest.split(" ") if word]


def _places(command: str) -> Iterator[tuple[str, str]]:
    words = command.split(" ")
    for count in range(1, min(len(words), MOST_BLANKS) + 1):
        yield " ".join(words[:count]), " ".join(words[count:])


def _with_script(job: Job, found: WrappedJob) -> dict[str, Any]:
    """The script and what was asked for on the command line, as far as the record has it."""
    report = job.report
    script = found.script.decode("utf-8", "replace")
    resources: dict[str, Any] = {"shared_memory": found.shared_memory}
    options = list(found.options)
    if len(report.nodes) <= 1:
        memory = format_size(report.memory_mb) if report.memory_mb else None
        resources |= {"cpus": report.cpus or None, "memory": memory}
        if not any(option in script for option in _GPU_OPTIONS):
            options += _gpus(report.shards, report.gpus)
    return {
        "script": script if "\ufffd" not in script else "",
        "image": found.image,
        "mounts": found.mounts,
        "options": options,
        "resources": {name: value for name, value in resources.items() if value},
    }


def _gpus(shards: int, gpus: int) -> list[str]:
    if shards:
        return [f"--gres=shard:{shards}"]
    return [f"--gres=gpu:{gpus}"] if gpus else []


def _valid(body: dict[str, Any]) -> dict[str, Any]:
    """The body without fields that a request cannot have."""
    filled = body if "path" in body or "script" in body else body | {"script": "#!/bin/sh\n"}
    try:
        parse_job(filled)
    except InvalidRequest as error:
        wrong = {found.field.partition(".")[0] for found in error.errors}
        return {name: value for name, value in body.items() if name not in wrong}
    return body
