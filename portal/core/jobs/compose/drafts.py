"""Stored requests: job templates, and recent submissions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

MAX_TEMPLATES = 100
"""Templates of one user."""
SCRIPTS_KEPT = 50
"""Submitted scripts that are stored for each user, for submitting them again."""
SUBMISSIONS_DAYS = 90
"""Days for which a submission's key and fields are stored."""


class Shared(StrEnum):
    """The other users who may use a template."""

    NOBODY = "nobody"
    ACCOUNT = "account"
    SITE = "site"


class TemplateKey(NamedTuple):
    """The primary key of a template."""

    owner: str
    name: str


@dataclass(frozen=True)
class JobTemplate:
    """A request to submit a job, saved under a name."""

    owner: str
    name: str
    body: dict[str, Any]
    """A JobRequest of the REST API; without the script in lists."""
    saved: datetime
    shared: Shared = Shared.NOBODY
    account: str = ""
    """The Slurm account with access, if the template is shared with one."""

    @property
    def key(self) -> TemplateKey:
        """Its primary key."""
        return TemplateKey(self.owner, self.name)

    def may_see(self, user: str, accounts: Collection[str]) -> bool:
        """Whether a user may use it; `accounts` are the user's and their ancestors."""
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
    """The hash of the request: the same key must not be used for a different request."""
    created: datetime
    body: dict[str, Any] = field(default_factory=dict)
    """A JobRequest of the REST API; {} once it is deleted."""
    job_id: str = ""
    """Slurm's job id; "" while it is not known."""
