"""Reads Slurm's jobs for pages and API, and acts on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from portal.core.auth.person import Person
from portal.core.cluster.extensions import Extensions
from portal.core.cluster.job_reports import JobState
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
)
from portal.core.jobs.actions import targets as records_of
from portal.core.jobs.ends import explain_end
from portal.core.jobs.job import Job, JobTab, tab_of
from portal.core.jobs.pending import explain_pending
from portal.core.jobs.query import MAX_AT_ONCE, JobPage, JobQuery
from portal.core.session.pending_reasons import Reason
from portal.errors import Conflict, FieldError, InvalidRequest, NotFound, Unavailable
from portal.services.admin.administration import Administration
from portal.services.extending import LEASE, Extender, Minutes
from portal.store.jobs.store import JobStore
from portal.store.sessions import SessionStore

_NO_JOB = "There is no such job."
_NO_TASK = (
    "Task {task} of array {array} is not listed. Completed and cancelled tasks are only counted "
    "some days after their end; sacct has them."
)
_ONLY_RUNNING = "Only a running job can be given more time."
_NOT_HERE = "Time cannot be extended here."
_IS_SESSION = "This job runs a session. Extend it on the Sessions page."


class Jobs:
    """The jobs that a user may see, and actions on them."""

    def __init__(
        self,
        *,
        store: JobStore,
        sessions: SessionStore,
        slurm: JobScheduler,
        scheduler: Scheduler,
        administration: Administration,
        extender: Extender,
        extend_minutes: int,
        clock: Clock,
    ) -> None:
        self._store = store
        self._sessions = sessions
        self._slurm = slurm
        self._scheduler = scheduler
        self._administration = administration
        self._extender = extender
        self._default = extend_minutes
        self._clock = clock

    # Reading

    def get(self, person: Person, shown_id: str) -> Job:
        """The job, if this user may see it; else NotFound, whether or not it exists."""
        job = self._store.get(shown_id)
        if job is not None and _may_see(person, job):
            return job
        task = re.fullmatch(r"([0-9]{1,10})_([0-9]{1,9})", shown_id, re.ASCII)
        if job is None and task and self.get(person, task[1]).array_id == task[1]:
            raise NotFound(_NO_TASK.format(array=task[1], task=task[2]))
        raise NotFound(_NO_JOB)

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

    def tasks(self, job: Job) -> dict[JobTab, int]:
        """Of a job of an array: the number of the array's tasks on each tab."""
        counts: Counter[JobTab] = Counter()
        for state, number in self._store.states_of_array(job.array_id).items():
            counts[tab_of(state)] += number
        return dict(counts)

    def owners(self, person: Person, most: int) -> list[str]:
        """At most `most` owners to filter by; [] for users who see only their own jobs."""
        return self._store.owners(most) if person.admin else []

    def reason(self, job: Job) -> Reason | None:
        """Why a job waits; None if it does not."""
        return explain_pending(job)

    def end_texts(self, jobs: Sequence[Job]) -> dict[str, str]:
        """How each ended, in plain words, by record; "" for a live job.

        Of a session's job, in the session's words: to Slurm, the portal's account ended it.
        """
        ids = {job.session for job in jobs if job.session and job.report.state.over}
        sessions = {each.id: each.end_text for each in self._sessions.get_many(ids)} if ids else {}
        return {job.id: sessions.get(job.session or "") or explain_end(job) for job in jobs}

    def ahead_of(self, jobs: Sequence[Job]) -> dict[str, int]:
        """Number of jobs ahead of each pending one whose place in the queue matters, by record."""
        return self._store.ahead(jobs)

    # Acting

    def act(self, person: Person, action: JobAction, ids: Iterable[str]) -> list[JobOutcome]:
        """Apply an action to all of these jobs or arrays; the outcome of each, in this order.

        Raises NotFound unless the user may see all of them, InvalidRequest for too many.
        """
        targets = self.targets(person, ids)
        refused = {target.id: text for target in targets if (text := refusal(action, target))}
        possible = [target for target in targets if target.id not in refused]
        problems = self._do(action, possible)
        succeeded = [target for target in possible if not problems[target.id]]
        if action is JobAction.CANCEL:
            jobs = [job for target in succeeded for job in target.jobs]
            live = [job.id for job in jobs if not job.report.state.over]
            self._store.note_cancelled(live, person.name)
        lines = [(target.title, _description(person, target)) for target in succeeded]
        self._administration.record_all(person.name, f"job.{action}", lines)
        texts = {**{target.id: SUCCESS_TEXTS[action] for target in succeeded}, **refused}
        return [
            JobOutcome(target.id, target in succeeded, texts.get(target.id) or problems[target.id])
            for target in targets
        ]

    def targets(self, person: Person, shown_ids: Iterable[str]) -> list[JobTarget]:
        """The jobs and arrays with these numbers, each once, in this order.

        Raises as `act` does.
        """
        ids = list(dict.fromkeys(shown_ids))
        if len(ids) > MAX_AT_ONCE:
            raise InvalidRequest([FieldError("ids", f"name at most {MAX_AT_ONCE} jobs")])
        numbers = {id for id in ids if re.fullmatch("[0-9]{1,10}", id, re.ASCII)}
        jobs = self._store.get_many(numbers)
        shown = [job for id in ids if id not in numbers if (job := self._store.get(id))]
        missing = NotFound(_NO_JOB if len(ids) == 1 else "Not all of these jobs exist.")
        if any(not _may_see(person, job) for job in (*jobs, *shown)):
            raise missing
        by_record = {job.id: job for job in jobs}
        tasks: dict[str, list[Job]] = {}
        for job in jobs:
            tasks.setdefault(job.array_id, []).append(job)
        targets = []
        for id in ids:
            record = by_record.get(id) or (None if id in numbers else self._store.get(id))
            matches = tasks.get(id, []) or ([record] if record else [])
            if not matches:
                raise missing
            targets.append(job_target(id, matches))
        return targets

    def _do(self, action: JobAction, possible: Sequence[JobTarget]) -> dict[str, str]:
        """Send an action to Slurm as the jobs' owners; the problem of each target, or ""."""
        records = {target.id: records_of(action, target) for target in possible}
        number = sum(map(len, records.values()))
        if action is not JobAction.CANCEL and number > MAX_SINGLE:
            text = f"{action} at most {MAX_SINGLE} jobs at once; these are {number}"
            raise InvalidRequest([FieldError("ids", text)])
        answers: dict[str, str] = {}
        for owner in dict.fromkeys(target.owner for target in possible):
            mine = [r for target in possible if target.owner == owner for r in records[target.id]]
            answers |= self._send(owner, action, list(dict.fromkeys(mine)))
        unknown = "Slurm did not answer for it. Look at its state, then try again."
        return {
            target.id: next((a for r in records[target.id] if (a := answers.get(r, unknown))), "")
            for target in possible
        }

    def _send(self, owner: str, action: JobAction, mine: list[str]) -> dict[str, str]:
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
        with self._alone(job) as started:
            running = self._running(job)
            # By its shown number: the last task of an array has the array's number, by which Slurm
            # would change all tasks, and the first component that of the heterogeneous job.
            report = replace(running.report, job_id=running.shown_id)
            added = self._extender.extend(
                report,
                minutes,
                self._default,
                started,
                lambda: self._running(job).report.time_limit,
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

        def release_lock(started: datetime) -> None:
            self._store.release_claim(job.id, started)

        return self._extender.alone(job.id, claim, release_lock)

    def _running(self, job: Job) -> Job:
        """The job as Slurm has it now; raises Conflict unless it runs."""
        current = self._slurm.find(job.id) if job.report.state is JobState.RUNNING else None
        same = current is not None and current.report.user == job.report.user
        if current is None or not same or current.report.state is not JobState.RUNNING:
            raise Conflict(_ONLY_RUNNING)
        return current

    def extensions(self, job: Job) -> Extensions:
        """The possible extensions of a running job; none for others."""
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


def _description(person: Person, target: JobTarget) -> str:
    return target.name if target.owner == person.name else f"{target.name} of {target.owner}"
