"""Jobs to submit that are kept: templates, and what was submitted lately."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

MAX_TEMPLATES = 100
"""Templates of one user."""
SCRIPTS_KEPT = 50
"""Submitted scripts of one user that are kept, to submit them again."""
SUBMISSIONS_DAYS = 90
"""Days for which a submission's key and fields are kept."""


class Shared(StrEnum):
    """Who else may use a template."""

    NOBODY = "nobody"
    ACCOUNT = "account"
    SITE = "site"


class TemplateKey(NamedTuple):
    """What identifies a template."""

    owner: str
    name: str


@dataclass(frozen=True)
class JobTemplate:
    """A job to submit that somebody has saved under a name."""

    owner: str
    name: str
    body: dict[str, Any]
    """A JobRequest of the REST API; without the script in lists."""
    saved: datetime
    shared: Shared = Shared.NOBODY
    account: str = ""
    """The Slurm account that may use it, if it is shared with one."""

    @property
    def key(self) -> TemplateKey:
        """What identifies it."""
        return TemplateKey(self.owner, self.name)

    def may_see(self, user: str, accounts: Collection[str]) -> bool:
        """Whether a user with these accounts, and those above them, may use it."""
        if self.owner == user or self.shared is Shared.SITE:
            return True
        return self.shared is Shared.ACCOUNT and self.account in accounts


@dataclass(frozen=True)
class Submission:
    """One request to submit a job."""

    owner: str
    key: str
    """The Idempotency-Key, or a random one."""
    fingerprint: str
    """The hash of the request: the same key must not be used for another one."""
    created: datetime
    body: dict[str, Any] = field(default_factory=dict)
    """A JobRequest of the REST API; {} if it is not kept any more."""
    job_id: str = ""
    """The number that Slurm gave it; "" while that is not known."""
