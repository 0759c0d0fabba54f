"""Queries about jobs and actions on them, by Slurm's commands on the login node."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from portal.adapters.slurm import accounting, commands, queue, texts
from portal.adapters.slurm.accounting import RecordQuery
from portal.adapters.slurm.asking import QueryRunner, RefusedError
from portal.adapters.ssh.transport import Transport
from portal.core.interfaces.jobs import JobScheduler
from portal.core.jobs.actions import JobAction
from portal.core.jobs.job import Job, JobTexts
from portal.errors import Unavailable

log = logging.getLogger(__name__)
Record = TypeVar("Record")

# One command for each job, since Slurm does not report errors by job for several at once.
_EACH = r"""
action=$1; shift
for job in "$@"; do
    errors=$(LC_ALL=C.UTF-8 scontrol "$action" "$job" 2>&1)
    printf '%s %s %s\n' "$job" "$?" "$(printf %s "$errors" | tr '\n' '|')"
done
"""
_ANSWER = re.compile(r"(?P<job>[0-9_]{1,20}) (?P<code>[0-9]{1,3}) (?P<errors>.*)")
_PREFIXES = re.compile(r"(slurm_\w{1,40} error: ?|scontrol: error: )+")
MAX_ERROR = 200
_TRIES = 3
"""How often accounting is queried while its two answers do not match."""


class SlurmJobs(JobScheduler):
    """JobScheduler over Slurm's command line tools."""

    def __init__(self, transport: Transport, reader: str, seconds: float) -> None:
        self._transport = transport
        self._seconds = seconds
        self._queries = QueryRunner(transport, reader, seconds)
        self._output = True
        """Whether accounting has the paths of output files: since Slurm 24.05."""

    def find(self, job_id: str) -> Job | None:
        if not commands.is_job_id(job_id):
            return None
        try:
            jobs = queue.squeue_parse(self._queries.ask(queue.squeue_argv(job=job_id)))
        except RefusedError as error:
            _check_unknown(error)
            return None
        except commands.UnexpectedOutput as error:
            raise Unavailable(f"Slurm's answer cannot be read: {error}") from error
        return next((job for job in jobs if job.id == job_id), None)

    def texts(self, job_ids: Collection[str]) -> dict[str, JobTexts]:
        separator = texts.new_separator()
        argv = texts.texts_argv(job_ids)
        try:
            output = self._queries.ask(argv, texts.texts_format(separator))
        except RefusedError as error:  # the only job of the query has left the queue
            _check_unknown(error)
            return {}
        return texts.texts_parse(output, separator, job_ids)

    def ended(self, job_ids: Collection[str]) -> dict[str, Job]:
        ids = sorted(filter(commands.is_job_id, job_ids))
        deadline = time.monotonic() + self._seconds
        jobs = halving(lambda part: self._records(RecordQuery(job_ids=tuple(part))), ids, deadline)
        requested = set(ids)
        return {job.id: self._with_canceller(job) for job in jobs if job.id in requested}

    def history(self, since: datetime, until: datetime) -> list[Job]:
        return [
            self._with_canceller(job) for job in self._records(RecordQuery(span=(since, until)))
        ]

    def _records(self, query: RecordQuery) -> list[Job]:
        try:
            return self._query_records(query)
        except RefusedError as error:
            if accounting.OFF in error.text:
                return []
            raise

    def _query_records(self, query: RecordQuery) -> list[Job]:
        for _ in range(_TRIES):
            numbers, jobs = accounting.facts_parse(self._queries.ask(accounting.facts_argv(query)))
            texts_by_id = self._texts_of(query, numbers) if jobs else {}
            if texts_by_id is not None:
                return [replace(job, texts=texts_by_id.get(job.id, job.texts)) for job in jobs]
        log.warning("accounting's answers do not have the fields of %d jobs", len(numbers))
        return jobs

    def _texts_of(
        self, query: RecordQuery, numbers: Sequence[str]
    ) -> Mapping[str, JobTexts] | None:
        """The user-written texts by job.

        None if another job has ended since the ids were read, or if the output is forged.
        """
        separator, output = texts.new_separator(), self._output
        try:
            printed = self._queries.ask(accounting.texts_argv(query, separator, output=output))
        except RefusedError as error:
            if not output or "field" not in error.text.lower():
                raise
            self._output = False
            return self._texts_of(query, numbers)
        return accounting.texts_parse(printed, separator, numbers, output=output)

    def _with_canceller(self, job: Job) -> Job:
        return replace(job, report=self._queries.with_canceller(job.report))

    def act(self, user: str, action: JobAction, targets: Sequence[str]) -> dict[str, str]:
        job_ids = list(filter(commands.TARGET.fullmatch, targets))
        if not job_ids:
            return {}
        limit = ["timeout", "--kill-after=2", f"{self._seconds:.0f}"]
        argv = [*limit, "/bin/sh", "-c", _EACH, "sh", action.value, *job_ids]
        result = self._transport.run(user, argv, seconds=self._seconds + 5)
        answers = _answers(result.stdout.decode(errors="replace"), job_ids)
        if not answers:
            reason = (
                "took too long" if result.code in (124, 137) else f"failed: {result.error_text()}"
            )
            raise Unavailable(f"The command on the login node {reason}.")
        return answers


def _answers(output: str, targets: Collection[str]) -> dict[str, str]:
    """The outcome for each job: "" for success, else Slurm's message."""
    errors = {}
    for line in output.split("\n"):
        match = _ANSWER.fullmatch(line)
        if match is not None and match["job"] in targets:
            succeeded = match["code"] == "0" or _SOME_SUCCEEDED in match["errors"]
            errors[match["job"]] = "" if succeeded else _message(match["errors"])
    return errors


_SOME_SUCCEEDED = ": No error"
"""Part of the message for an array of which other tasks have ended."""


def _message(errors: str) -> str:
    # Truncated first: a user's shell may print so much that the pattern takes minutes.
    words = _PREFIXES.sub("", errors.partition("|")[0][: 2 * MAX_ERROR]).strip()[:MAX_ERROR]
    return "".join(c if c.isprintable() else " " for c in words) or "it does not say why"


def _check_unknown(error: RefusedError) -> None:
    """Raise squeue's error again, unless it says that the job is unknown."""
    if "Invalid job id" not in error.text:
        raise error


BAD_JOB = "Bad job"
"""Part of sacct's message about a job id that it rejects."""


def halving(
    ask: Callable[[Sequence[str]], list[Record]], ids: Sequence[str], deadline: float
) -> list[Record]:
    """Query all ids at once; if one is rejected, query each half, so that it blocks no other id."""
    if not ids:
        return []
    try:
        return ask(ids)
    except RefusedError as error:
        # No other error says anything about a single job, in particular not that it is unknown.
        if BAD_JOB not in error.text or time.monotonic() > deadline:
            raise
        if len(ids) == 1:
            log.warning("accounting rejects job %s: %s", ids[0], error)
            return []
        middle = len(ids) // 2
        halves = ids[:middle], ids[middle:]
        return [record for half in halves for record in halving(ask, half, deadline)]
