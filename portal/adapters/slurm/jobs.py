"""Slurm's jobs on the login node, for the Jobs page: what is asked about them, and what is done."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from portal.adapters.slurm import accounting, commands, queue, texts
from portal.adapters.slurm.accounting import Which
from portal.adapters.slurm.asking import Asker, RefusedError
from portal.adapters.ssh.transport import Transport
from portal.core.interfaces.jobs import JobScheduler
from portal.core.jobs.actions import JobAction
from portal.core.jobs.job import Job, JobTexts
from portal.errors import Unavailable

log = logging.getLogger(__name__)
Found = TypeVar("Found")

# The answers of one command for each job: Slurm reports no errors by job for several at once.
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
"""How often accounting is asked while its two answers do not fit."""


class SlurmJobs(JobScheduler):
    """JobScheduler over Slurm's command line tools."""

    def __init__(self, transport: Transport, reader: str, seconds: float) -> None:
        self._transport = transport
        self._seconds = seconds
        self._asker = Asker(transport, reader, seconds)
        self._output = True
        """Whether accounting has the paths of output files: since Slurm 24.05."""

    def find(self, job_id: str) -> Job | None:
        if not commands.is_job_id(job_id):
            return None
        try:
            found = queue.squeue_parse(self._asker.ask(queue.squeue_argv(job=job_id)))
        except RefusedError as error:
            _check_unknown(error)
            return None
        except commands.UnexpectedOutput as error:
            raise Unavailable(f"Slurm's answer cannot be read: {error}") from error
        return next((job for job in found if job.id == job_id), None)

    def texts(self, job_ids: Collection[str]) -> dict[str, JobTexts]:
        separator = texts.new_separator()
        argv = texts.texts_argv(job_ids)
        try:
            printed = self._asker.ask(argv, texts.texts_format(separator))
        except RefusedError as error:  # the only job of the question has left the queue
            _check_unknown(error)
            return {}
        return texts.texts_parse(printed, separator, job_ids)

    def ended(self, job_ids: Collection[str]) -> dict[str, Job]:
        wanted = sorted(filter(commands.is_job_id, job_ids))
        deadline = time.monotonic() + self._seconds
        found = halving(lambda ids: self._records(Which(job_ids=tuple(ids))), wanted, deadline)
        known = set(wanted)
        return {job.id: self._named(job) for job in found if job.id in known}

    def history(self, since: datetime, until: datetime) -> list[Job]:
        return [self._named(job) for job in self._records(Which(span=(since, until)))]

    def _records(self, which: Which) -> list[Job]:
        try:
            return self._asked(which)
        except RefusedError as error:
            if accounting.OFF in error.text:
                return []
            raise

    def _asked(self, which: Which) -> list[Job]:
        for _ in range(_TRIES):
            numbers, jobs = accounting.facts_parse(self._asker.ask(accounting.facts_argv(which)))
            told = self._told(which, numbers) if jobs else {}
            if told is not None:
                return [replace(job, texts=told.get(job.id, job.texts)) for job in jobs]
        log.warning("accounting's answers do not have the fields of %d jobs", len(numbers))
        return jobs

    def _told(self, which: Which, numbers: Sequence[str]) -> Mapping[str, JobTexts] | None:
        """What users wrote, by job.

        None if another job has ended since their numbers were read, or if the answer is forged.
        """
        separator, output = texts.new_separator(), self._output
        try:
            printed = self._asker.ask(accounting.texts_argv(which, separator, output=output))
        except RefusedError as error:
            if not output or "field" not in error.text.lower():
                raise
            self._output = False
            return self._told(which, numbers)
        return accounting.texts_parse(printed, separator, numbers, output=output)

    def _named(self, job: Job) -> Job:
        return replace(job, report=self._asker.named(job.report))

    def act(self, user: str, action: JobAction, targets: Sequence[str]) -> dict[str, str]:
        known = list(filter(commands.TARGET.fullmatch, targets))
        if not known:
            return {}
        limit = ["timeout", "--kill-after=2", f"{self._seconds:.0f}"]
        argv = [*limit, "/bin/sh", "-c", _EACH, "sh", action.value, *known]
        done = self._transport.run(user, argv, seconds=self._seconds + 5)
        answers = _answers(done.stdout.decode(errors="replace"), known)
        if not answers:
            why = "took too long" if done.code in (124, 137) else f"failed: {done.error_text()}"
            raise Unavailable(f"The command on the login node {why}.")
        return answers


def _answers(printed: str, targets: Collection[str]) -> dict[str, str]:
    """What became of each job: "" if it was done, else Slurm's words."""
    found = {}
    for line in printed.split("\n"):
        match = _ANSWER.fullmatch(line)
        if match is not None and match["job"] in targets:
            done = match["code"] == "0" or _SOME_DONE in match["errors"]
            found[match["job"]] = "" if done else _words(match["errors"])
    return found


_SOME_DONE = ": No error"
"""In the answer for an array of which other tasks are over."""


def _words(errors: str) -> str:
    # Cut first: a user's shell may print much, over which the pattern would take minutes.
    words = _PREFIXES.sub("", errors.partition("|")[0][: 2 * MAX_ERROR]).strip()[:MAX_ERROR]
    return "".join(c if c.isprintable() else " " for c in words) or "it does not say why"


def _check_unknown(error: RefusedError) -> None:
    """Raise squeue's refusal again, unless it is that it does not know the job."""
    if "Invalid job id" not in error.text:
        raise error


BAD_JOB = "Bad job"
"""In sacct's words about a number that it does not take."""


def halving(
    ask: Callable[[Sequence[str]], list[Found]], ids: Sequence[str], deadline: float
) -> list[Found]:
    """Ask about all at once, and about each half if one is bad, which must not block the others."""
    if not ids:
        return []
    try:
        return ask(ids)
    except RefusedError as error:
        # Of any other refusal nothing follows for a job, above all not that it is unknown.
        if BAD_JOB not in error.text or time.monotonic() > deadline:
            raise
        if len(ids) == 1:
            log.warning("accounting rejects job %s: %s", ids[0], error)
            return []
        middle = len(ids) // 2
        halves = ids[:middle], ids[middle:]
        return [found for half in halves for found in halving(ask, half, deadline)]
