"""A job that is submitted again: what is known of the first one."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from portal.core.jobs.compose.drafts import Submission
from portal.core.jobs.compose.submission import parse_job
from portal.core.jobs.job import Job
from portal.core.units import format_size
from portal.errors import InvalidRequest

_TOLERANCE = timedelta(days=1)
_TEMPORARY = re.compile(r"/slipway-[a-z0-9_]{8}/[^/]+$")
"""What `slipway sbatch` gives to sbatch in place of a file of the user's."""


def same_job(job: Job, submission: Submission | None) -> dict[str, Any]:
    """The body of a request for the same job: as it was submitted here, else as Slurm tells it."""
    if submission is not None and submission.body and _is_of(job, submission):
        return submission.body
    return _valid(_known(job))


def _is_of(job: Job, submission: Submission) -> bool:
    """Whether they belong together: Slurm uses its numbers again after a long time."""
    submitted = job.report.submitted
    return submitted is None or abs(submitted - submission.created) < _TOLERANCE


def _known(job: Job) -> dict[str, Any]:
    """What Slurm tells: with the script's own file, its #SBATCH lines say the rest."""
    report, texts = job.report, job.texts
    file, *arguments = texts.command.split(" ")
    body: dict[str, Any] = {
        "name": texts.name,
        "resource_group": report.partition,
        "account": report.account,
        "qos": report.qos,
        "directory": texts.directory,
        "time_limit": report.time_limit,
    }
    if file.startswith("/") and not _TEMPORARY.search(file):
        body |= {"path": file, "args": [word for word in arguments if word]}
    elif len(report.nodes) <= 1:
        size = format_size(report.memory_mb) if report.memory_mb else None
        body["resources"] = {"cpus": report.cpus or None, "memory": size}
    return {name: value for name, value in body.items() if value}


def _valid(body: dict[str, Any]) -> dict[str, Any]:
    """The body without fields that a request cannot have."""
    filled = body if "path" in body else body | {"script": "#!/bin/sh\n"}
    try:
        parse_job(filled)
    except InvalidRequest as error:
        wrong = {found.field.partition(".")[0] for found in error.errors}
        return {name: value for name, value in body.items() if name not in wrong}
    return body
