"""Slurm's jobs on the login node, for the Jobs page: what is asked about them, and what is done."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from portal.adapters.slurm import accounting, commands, queue, texts
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
_PREFIXES = re.compile(r"(slurm_\w+ error: ?|scontrol: error: )+")
TARGET = re.compile(r"[0-9]{1,10}(_[0-9]{1,9})?", re.ASCII)
"""A job, an array or one task of an array, as scontrol and scancel take it."""
MAX_ERROR = 200


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
        except RefusedError:  # "Invalid job id specified"
            return None
        return next((job for job in found if job.id == job_id), None)

    def texts(self, job_ids: Collection[str]) -> dict[str, JobTexts]:
        separator = texts.new_separator()
        argv = texts.texts_argv(job_ids)
        try:
            printed = self._asker.ask(argv, texts.texts_format(separator))
        except RefusedError:  # the only job of the question has left the queue
            return {}
        return texts.texts_parse(printed, separator, job_ids)

    def ended(self, job_ids: Collection[str]) -> dict[str, Job]:
        wanted = sorted(filter(commands.is_job_id, job_ids))
        deadline = time.monotonic() + self._seconds
        found = halving(lambda ids: self._records(job_ids=ids), wanted, deadline)
        known = set(wanted)
        return {job.id: self._named(job) for job in found if job.id in known}

    def history(self, since: datetime, until: datetime) -> list[Job]:
        return [self._named(job) for job in self._records(span=(since, until))]

    def _records(
        self,
        *,
        job_ids: Collection[str] = (),
        span: tuple[datetime, datetime] | None = None,
    ) -> list[Job]:
        separator, output = texts.new_separator(), self._output
        argv = accounting.records_argv(separator, job_ids=job_ids, span=span, output=output)
        try:
            printed = self._asker.ask(argv)
        except RefusedError as error:
            if accounting.OFF in error.text:
                return []
            if not output or "field" not in error.text.lower():
                raise
            self._output = False
            return self._records(job_ids=job_ids, span=span)
        return list(accounting.records_parse(printed, separator, output=output))

    def _named(self, job: Job) -> Job:
        return replace(job, report=self._asker.named(job.report))

    def act(self, user: str, action: JobAction, targets: Sequence[str]) -> dict[str, str]:
        known = list(filter(TARGET.fullmatch, targets))
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
    words = _PREFIXES.sub("", errors.partition("|")[0]).strip()[:MAX_ERROR]
    return "".join(c if c.isprintable() else " " for c in words) or "it does not say why"


def halving(
    ask: Callable[[Sequence[str]], list[Found]], ids: Sequence[str], deadline: float
) -> list[Found]:
    """Ask about all at once, and about each half on an error: one bad id must not block others."""
    if not ids:
        return []
    try:
        return ask(ids)
    except RefusedError as error:
        if len(ids) == 1 or time.monotonic() > deadline:
            log.warning("accounting rejects job %s: %s", ", ".join(ids), error)
            return []
        middle = len(ids) // 2
        halves = ids[:middle], ids[middle:]
        return [found for half in halves for found in halving(ask, half, deadline)]
