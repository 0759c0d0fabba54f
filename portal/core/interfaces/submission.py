"""Interfaces for submitting jobs: the login node, and the store of submissions."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol

from portal.core.jobs.compose.command import SubmitCommand
from portal.core.jobs.compose.drafts import JobTemplate, Submission, TemplateKey
from portal.core.launch.presets import SaveResult


class Submitter(Protocol):
    """`slipway sbatch` on the login node, as a user. Methods raise Unavailable."""

    def submit(self, user: str, command: SubmitCommand) -> str:
        """Submit a job and return its number.

        Raises SubmissionRefused with sbatch's message, HomeUnusable, OutcomeUnknown if the answer
        was lost.
        """
        ...

    def check(self, user: str, command: SubmitCommand) -> str:
        """The output of sbatch --test-only, its times in UTC; raises SubmissionRefused."""
        ...

    def read_script(self, user: str, path: str) -> bytes:
        """A file that may be a script, up to core/jobs/compose/submission.py's MAX_SCRIPT.

        Raises ScriptUnreadable with the reason.
        """
        ...

    def stored_script(self, user: str, job_id: str) -> bytes:
        """The script of one of the user's jobs, as Slurm stores it.

        Raises ScriptUnreadable, for example if Slurm has forgotten the job.
        """
        ...


class SubmissionStore(Protocol):
    """What was submitted with which key. Every method is one transaction."""

    def claim(self, submission: Submission) -> Submission | None:
        """Store a submission before it is sent; None, or the earlier one that has its key."""
        ...

    def sent(self, owner: str, key: str, job_id: str) -> None:
        """Store the job's number."""
        ...

    def release(self, owner: str, key: str) -> None:
        """Delete a submission that was refused, so that its key can be used again."""
        ...

    def of_job(self, owner: str, job_id: str) -> Submission | None:
        """The submission that became a user's job, if it is still known."""
        ...

    def delete(self, owner: str, before: datetime, most: int) -> None:
        """Delete a user's submissions from before a time, and all but the `most` last scripts."""
        ...


class JobTemplateStore(Protocol):
    """Job templates, by owner and name. Every method is one transaction."""

    def visible(self, user: str, accounts: Collection[str]) -> list[JobTemplate]:
        """The user's own, and those shared with these accounts or everybody; without scripts."""
        ...

    def get(self, key: TemplateKey) -> JobTemplate | None:
        """One template, whoever may see it."""
        ...

    def save(self, template: JobTemplate, replace: bool, most: int) -> SaveResult:
        """Store a template, unless its owner has `most` already or the name is taken."""
        ...

    def rename(self, key: TemplateKey, to: str) -> SaveResult:
        """Rename a template."""
        ...

    def remove(self, key: TemplateKey) -> bool:
        """Delete a template; whether there was one."""
        ...
