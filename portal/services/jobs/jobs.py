"""Reads Slurm's jobs for pages and API, and acts on them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from portal.core.auth.person import Person
from portal.core.cluster.extensions import Extensions
from portal.core.cluster.jobs import JobState
from portal.core.interfaces.jobs import JobScheduler
from portal.core.interfaces.systems import Clock, Scheduler
from portal.core.jobs.actions import (
    MAX_SINGLE,
    SUCCESS_TEXTS,
    JobAction,
    JobOutcome,
    JobTarget,
    job_target,
    refusal,
    targets,
)
from portal.core.jobs.ends import explain_end
from portal.core.jobs.job import Job, JobTab
from portal.core.jobs.pending import explain_pending
from portal.core.jobs.query import MAX_AT_ONCE, JobPage, JobQuery
from portal.core.session.pending_reasons import Reason
from portal.errors import Conflict, FieldError, InvalidRequest, NotFound, Unavailable
from portal.services.admin.administration import Administration
from portal.services.extending import LEASE, Extender, Minutes, Queue
from portal.store.jobs.store import JobStore

_NONE = "There is no such job."
_ONLY_RUNNING = "Only a running job can be given more time."
_NOT_HERE = "Time cannot be extended here."
_IS_SESSION = "This job runs a session. Extend it on the Sessions page."


class Jobs:
    """The jobs that a user may see, and what can be done to them."""

    def __init__(
        self,
        *,
        store: JobStore,
        slurm: JobScheduler,
        scheduler: Scheduler,
        administration: Administration,
        extender: Extender,
        extend_minutes: int,
        clock: Clock,
    ) -> None:
        self._store = store
        self._slurm = slurm
        self._scheduler = scheduler
        self._administration = administration
        self._extender = extender
        self._usual = extend_minutes
        self._clock = clock
        self._queue = Queue("job")

    # Reading

    def get(self, person: Person, shown_id: str) -> Job:
        """The job, if this user may see it; else NotFound, whether or not it exists."""
        job = self._store.get(shown_id)
        if job is None or not _may_see(person, job):
            raise NotFound(_NONE)
        return job

    def query(self, person: Person, query: JobQuery) -> JobPage:
        """One page of the jobs that this user may see."""
        if not person.admin and query.owner not in (None, person.name):
            return JobPage()  # the same response whether or not such a user has jobs
        return self._store.query(_of(person, query), self._clock())

    def counts(self, person: Person, query: JobQuery) -> dict[JobTab, int]:
        """Number of rows on each tab of this user's page that match the other filters."""
        if not person.admin and query.owner not in (None, person.name):
            return dict.fromkeys(JobTab, 0)
        return self._store.counts(_of(person, query), self._clock())

    def owners(self, person: Person) -> list[str]:
        """Owners by which this user can filter; [] for users who see only their own jobs."""
        return self._store.owners() if person.admin else []

    def reason(self, job: Job) -> Reason | None:
        """Why a job waits; None if it does not."""
        return explain_pending(job)

    def end_text(self, job: Job) -> str:
        """How it ended, in plain words; "" while it lives."""
        return explain_end(job)

    def ahead_of(self, jobs: Sequence[Job]) -> dict[str, int]:
        """Number of jobs ahead of each pending one whose place in the queue matters, by record."""
        return self._store.ahead(jobs)

    # Acting

    def act(self, person: Person, action: JobAction, ids: Iterable[str]) -> list[JobOutcome]:
        """Do this to all of these jobs, or arrays; what became of each, in this order.

        Raises NotFound unless the user may see all of them, InvalidRequest for too many.
        """
        asked = self.asked(person, ids)
        refused = {one.id: text for one in asked if (text := refusal(action, one))}
        possible = [one for one in asked if one.id not in refused]
        problems = self._do(action, possible)
        done = [one for one in possible if not problems[one.id]]
        if action is JobAction.CANCEL:
            live = [job.id for one in done for job in one.jobs if not job.report.state.over]
            self._store.note_cancelled(live, person.name)
        lines = [(one.title, _description(person, one)) for one in done]
        self._administration.record_all(person.name, f"job.{action}", lines)
        texts = {**{one.id: SUCCESS_TEXTS[action] for one in done}, **refused}
        return [
            JobOutcome(one.id, one in done, texts.get(one.id) or problems[one.id]) for one in asked
        ]

    def asked(self, person: Person, given: Iterable[str]) -> list[JobTarget]:
        """What the numbers of an action refer to, each once, in this order.

        Raises as `act` does.
        """
        ids = list(dict.fromkeys(given))
        if len(ids) > MAX_AT_ONCE:
            raise InvalidRequest([FieldError("ids", f"name at most {MAX_AT_ONCE} jobs")])
        numbers = {one for one in ids if re.fullmatch("[0-9]{1,10}", one, re.ASCII)}
        found = self._store.get_many(numbers)
        shown = [job for one in ids if one not in numbers if (job := self._store.get(one))]
        missing = NotFound(_NONE if len(ids) == 1 else "Not all of these jobs exist.")
        if any(not _may_see(person, job) for job in (*found, *shown)):
            raise missing
        of_record = {job.id: job for job in found}
        tasks: dict[str, list[Job]] = {}
        for job in found:
            tasks.setdefault(job.array_id, []).append(job)
        asked = []
        for one in ids:
            record = of_record.get(one) or (None if one in numbers else self._store.get(one))
            known = tasks.get(one, []) or ([record] if record else [])
            if not known:
                raise missing
            asked.append(job_target(one, known))
        return asked

    def _do(self, action: JobAction, possible: Sequence[JobTarget]) -> dict[str, str]:
        """Tell Slurm, as the owners; why it was not done, or "", for each."""
        wanted = {one.id: targets(action, one) for one in possible}
        number = sum(map(len, wanted.values()))
        if action is not JobAction.CANCEL and number > MAX_SINGLE:
            text = f"{action} at most {MAX_SINGLE} jobs at once; these are {number}"
            raise InvalidRequest([FieldError("ids", text)])
        answers: dict[str, str] = {}
        for owner in dict.fromkeys(one.owner for one in possible):
            mine = [t for one in possible if one.owner == owner for t in wanted[one.id]]
            answers |= self._tell(owner, action, list(dict.fromkeys(mine)))
        unknown = "Slurm did not answer for it. Look at its state, then try again."
        return {
            one.id: next((a for t in wanted[one.id] if (a := answers.get(t, unknown))), "")
            for one in possible
        }

    def _tell(self, owner: str, action: JobAction, mine: list[str]) -> dict[str, str]:
        try:
            if action is JobAction.CANCEL:
                self._scheduler.cancel(owner, *mine)
                return dict.fromkeys(mine, "")
            answers = self._slurm.act(owner, action, mine)
        except Unavailable as error:
            return dict.fromkeys(mine, error.text)
        return {
            target: f"Slurm refused it: {why}" if why else "" for target, why in answers.items()
        }

    def extend(self, person: Person, shown_id: str, minutes: Minutes) -> Job:
        """Extend a running job; None adds the site's default. Raises Conflict, InvalidRequest."""
        job = self.get(person, shown_id)
        if job.session:
            raise Conflict(_IS_SESSION)
        if not self._scheduler.may_extend:
            raise Conflict(f"{_NOT_HERE} Ask the administrators.")
        with self._alone(job) as begun:
            running = self._running(job)
            # By its shown number: the last task of an array has the array's own number, by which
            # Slurm would change all tasks, and the first component that of the heterogeneous job.
            report = replace(running.report, job_id=running.shown_id)
            added = self._extender.extend(
                report, minutes, self._usual, begun, lambda: self._running(job).report.time_limit
            )
        detail = f"{added} minutes"
        self._administration.record(person.name, "job.extend", job.shown_id, detail)
        changed = self._slurm.find(job.id)
        if changed is not None:
            self._store.extended(job.id, changed.report.time_limit, changed.report.deadline)
        return self._store.get(shown_id) or job

    def _alone(self, job: Job) -> AbstractContextManager[datetime]:
        def claim() -> datetime | None:
            now = self._clock()
            return now if self._store.claim(job.id, now, LEASE) else None

        def give_back(begun: datetime) -> None:
            self._store.release_claim(job.id, begun)

        return self._queue.alone(job.id, claim, give_back)

    def _running(self, job: Job) -> Job:
        """The job as Slurm has it now; raises Conflict unless it runs."""
        found = self._slurm.find(job.id) if job.report.state is JobState.RUNNING else None
        same = found is not None and found.report.user == job.report.user
        if found is None or not same or found.report.state is not JobState.RUNNING:
            raise Conflict(_ONLY_RUNNING)
        return found

    def extensions(self, job: Job) -> Extensions:
        """By how much a running job can be extended now; nothing for others."""
        if job.report.state is not JobState.RUNNING or job.session:
            return Extensions()
        if not self._scheduler.may_extend:
            return Extensions(why=_NOT_HERE)
        return self._extender.extensions(job.report)


def _may_see(person: Person, job: Job) -> bool:
    return person.admin or person.name == job.report.user


def _of(person: Person, query: JobQuery) -> JobQuery:
    owner = query.owner if person.admin else person.name
    return query.model_copy(update={"owner": owner})


def _description(person: Person, asked: JobTarget) -> str:
    return asked.name if asked.owner == person.name else f"{asked.name} of {asked.owner}"
