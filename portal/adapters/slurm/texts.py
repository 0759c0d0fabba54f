"""User-written texts of jobs, from squeue: names, paths and dependencies.

A name may contain any character, line breaks and separators included. So each field ends with a
separator that is random for each query and cannot occur in earlier texts. It reaches squeue in the
environment, since other users of the login node can read arguments, but not the environment.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection

from portal.adapters.slurm.commands import is_job_id
from portal.core.interfaces.jobs import MOST_NAMED
from portal.core.jobs.job import JobTexts
from portal.core.jobs.output import LONGEST_PATH
from portal.core.jobs.output_paths import insert_name

_FIELDS = ("JobID", "Name", "WorkDir", "Command", "STDOUT", "STDERR", "Dependency")
_SCRIPT = 'IFS= read -r SQUEUE_FORMAT2 && export SQUEUE_FORMAT2 && exec squeue "$@"'
_NULL = "(null)"
_COPY = re.compile(r"\A/.*?/slipway-[a-z0-9_]{8}/(?=[^/])")
"""The temporary folder in which `slipway sbatch` passes a script to sbatch."""


def new_separator() -> str:
    """An unguessable separator, short since each job's record has several.

    It starts with "<": squeue reads leading digits as a width.
    """
    return f"<{secrets.token_hex(8)}>"


def texts_argv(job_ids: Collection[str]) -> list[str]:
    """List the texts of these jobs, or of all if they are many.

    The format is the first line of standard input.
    """
    if invalid := [job_id for job_id in job_ids if not is_job_id(job_id)]:
        raise ValueError(f"invalid job ids: {invalid}")
    options = ["--noheader", "--all", "--states=all"]
    if len(job_ids) <= MOST_NAMED:
        options.append(f"--jobs={','.join(sorted(job_ids))}")
    return ["/bin/sh", "-c", _SCRIPT, "squeue", *options]


def texts_format(separator: str) -> str:
    """The format, as the line for standard input."""
    return ",".join(f"{field}:{separator}" for field in _FIELDS) + "\n"


def texts_parse(text: str, separator: str, job_ids: Collection[str]) -> dict[str, JobTexts]:
    """The texts by job id; records of other jobs and incomplete ones are left out."""
    fields = text.split(separator)
    requested, by_job = set(job_ids), dict[str, JobTexts]()
    for start in range(0, len(fields) - len(_FIELDS) + 1, len(_FIELDS)):
        job_id, name, directory, command, stdout, stderr, dependency = fields[
            start : start + len(_FIELDS)
        ]
        if (number := job_id.strip()) in requested:
            texts = output_texts(name, directory, stdout, stderr)
            by_job[number] = JobTexts(
                texts.name,
                texts.directory,
                "" if command == _NULL else _COPY.sub("", command, count=1),
                texts.stdout,
                texts.stderr,
                "" if dependency == _NULL else dependency,
            )
    return by_job


def output_texts(name: str, directory: str, stdout: str = "", stderr: str = "") -> JobTexts:
    """The texts that both squeue and accounting have; without a separate file, stderr is stdout."""
    out, err = (_absolute(insert_name(path, name), directory) for path in (stdout, stderr))
    return JobTexts(name=name, directory=directory, stdout=out, stderr=err or out)


def _absolute(path: str, directory: str) -> str:
    if path in ("", _NULL):
        return ""
    # Slurm 26.05 shows paths as the user wrote them.
    absolute = path if path.startswith("/") else f"{directory.rstrip('/')}/{path}"
    return absolute if len(absolute) <= LONGEST_PATH else ""
