"""Submits composed jobs: checks them, sends them to sbatch, and stores them for resubmission."""

from __future__ import annotations

import codecs
import logging
import math
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from portal.core.admin.images import refused_files
from portal.core.apps.catalog import Catalog
from portal.core.auth.person import Person, hash_secret
from portal.core.interfaces.jobs import Submitter
from portal.core.interfaces.systems import Clock
from portal.core.jobs.compose.again import StoredJob, is_submission_of, same_job
from portal.core.jobs.compose.command import (
    SubmitCommand,
    names_begin,
    shell_text,
    submit_command,
    tasks_of,
)
from portal.core.jobs.compose.drafts import SCRIPTS_KEPT, SUBMISSIONS_DAYS, Submission
from portal.core.jobs.compose.gpus import NO_GPUS_YET, asks_for_known_gpus
from portal.core.jobs.compose.images import image_problem
from portal.core.jobs.compose.refusals import (
    ScriptTooLong,
    ScriptUnreadable,
    SubmissionRefused,
    refusal,
)
from portal.core.jobs.compose.submission import (
    JobRequest,
    normal_script,
    parse_job,
    script_path,
    script_problem,
    to_body,
)
from portal.core.jobs.job import Job
from portal.core.launch.mounts import Mount
from portal.core.slurm_options import SlurmOptions
from portal.errors import (
    Conflict,
    FieldError,
    HomeUnusable,
    InvalidRequest,
    KeyReused,
    NotFound,
    OutcomeUnknown,
    Unavailable,
)
from portal.services.admin.administration import Administration
from portal.services.cluster import GPUS_UNKNOWN_YET, Cluster
from portal.services.storage import GrantMounts
from portal.store.submissions import SubmissionStore

log = logging.getLogger(__name__)

CHECK_JOBS = "Look at your jobs before you submit it again."
_SUBMITTING = "This job is being submitted, or has been and the answer was lost. " + CHECK_JOBS
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF16 = "this file is in UTF-16, by its byte-order mark (BOM): save it as UTF-8 without BOM"
_NOT_TEXT = "this file is not text in UTF-8: submit it as a file instead"


@dataclass(frozen=True)
class JobScript:
    """What a job runs."""

    text: str
    path: str
    """Of the file that it was submitted from, which may have changed since; "" for others."""
    image: str
    """The image of the environment that it runs in; "" if it runs on the node itself."""


class Composer:
    """Use cases of the composer and of POST /api/v1/jobs."""

    def __init__(
        self,
        *,
        submitter: Submitter,
        store: SubmissionStore,
        job_of: Callable[[Person, str], Job],
        cluster: Cluster,
        administration: Administration,
        catalog: Callable[[], Catalog],
        own_images: Collection[str],
        site_folders: Collection[str],
        grant: GrantMounts,
        clock: Clock,
        launch_begin: Callable[[Person], datetime | None],
    ) -> None:
        self._submitter = submitter
        self._store = store
        self._job_of = job_of
        self._cluster = cluster
        self._administration = administration
        self._catalog = catalog
        self._own_images = frozenset(own_images)
        self._site_folders = site_folders
        self._grant = grant
        self._clock = clock
        self._launch_begin = launch_begin

    def parse(self, person: Person, data: object) -> JobRequest:
        """Validate untrusted input; raises InvalidRequest that names the wrong fields."""
        request = parse_job(data)
        problems = [
            *self._image_problem(person, request),
            *self._group_problem(person, request),
            *self._account_problems(person, request),
        ]
        if problems:
            raise InvalidRequest(problems)
        return request

    def _image_problem(self, person: Person, request: JobRequest) -> list[FieldError]:
        if request.image is None:
            return []
        catalog, image = self._catalog(), request.image
        visible = self._administration.visible_catalog(person, catalog)
        refused = refused_files(catalog, visible) if image.startswith("/") else ()
        problem = image_problem(image, visible, self._own_images, refused)
        return [FieldError("image", problem)] if problem else []

    def _group_problem(self, person: Person, request: JobRequest) -> list[FieldError]:
        requested = request.resource_group
        if requested is None or not self._cluster.look().partitions:
            return []
        groups = (
            self._cluster.look().launch_options(person.name, requested).groups
        )  # of any account
        if any(group.name == requested for group in groups):
            return []
        names = ", ".join(group.name for group in groups)
        text = f"choose one of: {names}" if names else "your account may use none here"
        return [FieldError("resource_group", text)]

    def _account_problems(self, person: Person, request: JobRequest) -> list[FieldError]:
        """A QOS that the account may not use; without an account, the script may name one."""
        if not (request.account and request.qos):
            return []
        options = SlurmOptions(account=request.account, qos=request.qos)
        return self._cluster.look().account_problems(person.name, request.resource_group, options)

    def command(self, request: JobRequest) -> str:
        """The command that submits the same job, for a shell."""
        return shell_text(submit_command(request))

    def check(self, person: Person, request: JobRequest) -> str:
        """The output of sbatch --test-only for a job; raises InvalidRequest, Unavailable."""
        self._check_file(person, request)
        try:
            start = self._submitter.check(person.name, submit_command(request))
        except SubmissionRefused as error:
            raise self._refusal(person, request, error) from None
        tasks = tasks_of(request, self._script_of(person, request))
        return f"{start}\nThis is the first of {tasks} tasks." if tasks > 1 else start

    def submit(self, person: Person, request: JobRequest, key: str | None = None) -> str:
        """Submit a job and return its number; the same key never submits twice.

        Raises InvalidRequest (nothing was submitted), KeyReused, Unavailable (nothing was
        submitted; also during maintenance without a known end), OutcomeUnknown (it may have been).
        """
        body = to_body(request)
        # Without defaults: fields that a later version adds do not change it.
        fingerprint = hash_secret(request.model_dump_json(exclude_defaults=True))
        key = key or uuid.uuid4().hex
        claimed = Submission(person.name, key, fingerprint, self._clock(), body)
        if earlier := self._store.claim(claimed):
            return _repeated(earlier, fingerprint)
        # Before it is sent: a user whose shell never answers could fill the database.
        self._forget_old(person)
        number = self._send(person, request, key)
        self._store.sent(person.name, key, number)
        self._administration.record(person.name, "job.submit", number, _description(request))
        return number

    def _send(self, person: Person, request: JobRequest, key: str) -> str:
        try:
            # After the key is claimed: a repeated request does not depend on the file.
            self._check_file(person, request)
            granted = request.model_copy(update={"mounts": self._granted(person, request)})
            command = self._after_maintenance(person, request, submit_command(granted))
        except (InvalidRequest, HomeUnusable, Unavailable) as error:
            self._store.release(person.name, key)
            if isinstance(error, OutcomeUnknown):
                raise Unavailable(error.text) from error  # while reading the file: nothing was sent
            raise
        try:
            return self._submitter.submit(person.name, command)
        except SubmissionRefused as error:
            self._store.release(person.name, key)
            raise self._refusal(person, request, error) from None
        except OutcomeUnknown as error:
            # The key stays in use: repeating the request must not submit a second job.
            log.warning("job of %s: submission unclear: %s", person.name, error)
            text = error.text if CHECK_JOBS in error.text else f"{error.text} {_SUBMITTING}"
            raise OutcomeUnknown(text) from error
        except (HomeUnusable, Unavailable):
            self._store.release(person.name, key)
            raise

    def _after_maintenance(
        self, person: Person, request: JobRequest, command: SubmitCommand
    ) -> SubmitCommand:
        """The command with a begin time after maintenance; raises UnderMaintenance.

        A begin time set by the job itself is kept: it may be later.
        """
        begin = self._launch_begin(person)
        if begin is None or names_begin(request.options, self._script_of(person, request)):
            return command
        seconds = math.ceil((begin - self._clock()).total_seconds())
        option = f"--begin=now+{max(seconds, 0)}"
        return replace(command, arguments=(option, *command.arguments))

    def _refusal(
        self, person: Person, request: JobRequest, error: SubmissionRefused
    ) -> InvalidRequest | Unavailable:
        """The error for the refused field; Unavailable right after Slurm's restart."""
        if NO_GPUS_YET in error.text:
            script = self._script_of(person, request)
            if asks_for_known_gpus(request, script, self._cluster.look().partitions):
                return Unavailable(GPUS_UNKNOWN_YET)
        return refusal(error, request)

    def _script_of(self, person: Person, request: JobRequest) -> str:
        """The script, or the content of the submitted file; "" if that cannot be read."""
        if request.script or not request.path:
            return request.script or ""
        try:
            return self._read(person, request.path).decode(errors="replace")
        except (ScriptUnreadable, Unavailable):
            return ""

    def _granted(self, person: Person, request: JobRequest) -> tuple[Mount, ...]:
        """The permitted mounts; `slipway sbatch` checks the user's own folders itself."""
        if not any(mount.owner for mount in request.mounts):
            return request.mounts
        return self._grant(person, request.mounts)

    def _forget_old(self, person: Person) -> None:
        before = self._clock() - timedelta(days=SUBMISSIONS_DAYS)
        self._store.delete(person.name, before, SCRIPTS_KEPT)

    def _check_file(self, person: Person, request: JobRequest) -> None:
        """Raise InvalidRequest, with a clear message, for a file that sbatch would not submit."""
        if request.path is None:
            return
        try:
            content = self._read(person, request.path)
            problem = (
                _UTF16 if content.startswith(_UTF16_MARKS) else script_problem(content.decode())
            )
        except (ScriptTooLong, UnicodeDecodeError):
            return  # sbatch decides
        except ScriptUnreadable as error:
            problem = str(error)
        if problem:
            raise InvalidRequest([FieldError("path", problem)])

    def _read(self, person: Person, path: str) -> bytes:
        return self._submitter.read_script(person.name, path)

    def read_script(self, person: Person, path: str) -> str:
        """A file of the user as text for the editor; raises InvalidRequest for "path"."""
        try:
            content = self._read(person, script_path(path))
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            problem = _UTF16 if content.startswith(_UTF16_MARKS) else _NOT_TEXT
            raise InvalidRequest([FieldError("path", problem)]) from None
        except (ScriptUnreadable, ValueError) as error:
            raise InvalidRequest([FieldError("path", str(error))]) from None
        if "\0" in text:
            raise InvalidRequest([FieldError("path", _NOT_TEXT)])
        return normal_script(text)

    def submitted(self, person: Person, number: str) -> bool:
        """Whether this user submitted the job with this number through the portal."""
        return self._store.of_job(person.name, number) is not None

    def again(self, person: Person, shown_id: str) -> dict[str, Any]:
        """The body of a request that repeats one of the user's own jobs, as far as it is known.

        Raises NotFound.
        """
        job = self._job_of(person, shown_id)
        if job.report.user != person.name:
            raise NotFound("There is no such job, or it is not yours.")
        number = job.array_id or job.het_id or job.id
        submission = self._store.of_job(person.name, number)
        if submission is not None and submission.body and is_submission_of(job, submission):
            return submission.body
        return same_job(job, self._stored(person, number))

    def script(self, person: Person, shown_id: str) -> JobScript:
        """The script of one of the user's own jobs, from here, from Slurm or from its file.

        Raises NotFound, and Conflict with the reason if it can be had nowhere any more.
        """
        body = self.again(person, shown_id)
        text, path = str(body.get("script", "")), str(body.get("path", ""))
        if path:
            try:
                text = self.read_script(person, path)
            except InvalidRequest as error:
                raise Conflict(f"{path}: {error.errors[0].message}.") from error
        if not text:
            raise Conflict("Slurm does not have the script of this job any more.")
        return JobScript(text, path, str(body.get("image", "")))

    def _stored(self, person: Person, number: str) -> StoredJob:
        """A job's script as far as Slurm still has it."""
        try:
            script = self._submitter.stored_script(person.name, number)
        except (ScriptUnreadable, Unavailable) as error:
            log.info("job %s of %s: its script cannot be read: %s", number, person.name, error)
            return StoredJob()

        def is_in(path: str) -> bool:
            try:
                return self._read(person, script_path(path)) == script
            except (ScriptUnreadable, Unavailable, ValueError):
                return False

        return StoredJob(script, is_in, self._site_folders)


def _repeated(earlier: Submission, fingerprint: str) -> str:
    if earlier.fingerprint != fingerprint:
        raise KeyReused("This Idempotency-Key was used for a different request.")
    if not earlier.job_id:
        raise OutcomeUnknown(_SUBMITTING)
    return earlier.job_id


def _description(request: JobRequest) -> str:
    """For the audit log: never the script, which may contain secrets."""
    parts = (
        request.name,
        f"image {request.image}" if request.image else "",
        f"file {request.path}" if request.path else "",
        f"array {request.array}" if request.array else "",
    )
    return ", ".join(part for part in parts if part)
