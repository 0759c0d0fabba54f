"""Usage by person, account, image and app, for administrators: now, and over time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from portal.core.admin.usage_report import (
    By,
    Report,
    Share,
    UsageFilter,
    UsageQuery,
    grouped,
    spans_of,
    total_of,
    used_in,
)
from portal.core.auth.person import Person
from portal.core.interfaces.systems import Clock
from portal.services.admin.administration import Administration
from portal.store.status import StatusStore
from portal.store.usage_report import UsageStore

OWN_IMAGE = "own image"
NO_ACCOUNT = "no account"


@dataclass(frozen=True)
class InUse:
    """The current use of one person; memory in MiB."""

    user: str
    running: int
    """Sessions that hold resources."""
    waiting: int
    cpus: int
    memory_mb: int
    fgpu: float
    last_used: datetime | None
    """When any of the sessions was last used; None if none was yet."""
    jobs: int
    """All running jobs in Slurm, including those that are not sessions."""


class Usage:
    """Sums over the sessions in the database."""

    def __init__(
        self,
        *,
        store: UsageStore,
        status: StatusStore,
        administration: Administration,
        clock: Clock,
    ) -> None:
        self._store = store
        self._status = status
        self._administration = administration
        self._clock = clock

    def now(self, person: Person) -> list[InUse]:
        """Users with live sessions, most cores first."""
        self._administration.admit(person)
        jobs = {use.user: use.jobs for use in self._status.nodes.users()}
        rows = [
            InUse(owner, held, waiting, cpus, mb, round(fgpu, 3), used, jobs.get(owner, 0))
            for owner, held, waiting, cpus, mb, fgpu, used in self._store.in_use()
        ]
        return sorted(rows, key=lambda row: (-row.cpus, row.user))

    def report(self, person: Person, query: UsageQuery) -> Report:
        """Usage over time; raises InvalidRequest."""
        self._administration.admit(person)
        now = self._clock()
        spans = spans_of(query, now)
        only = self._only(query) if query.of else None
        used = used_in(spans, *self._store.flows(spans, only), now)
        begin, end = spans[0].begin, min(spans[-1].end, now)
        shares = self._store.shares(query.by, begin, end)
        # A session counts for each of its apps, but once in the total.
        once = self._store.shares("person", begin, end) if query.by == "app" else shares
        groups = grouped(shares, self._name(query.by))
        return Report(query, tuple(zip(spans, used, strict=True)), groups, total_of(once))

    def export(self, person: Person, query: UsageQuery) -> Report:
        """The same, recorded as an export."""
        report = self.report(person, query)
        detail = query.model_dump_json(exclude_none=True)
        self._administration.record(person.name, "usage.export", "", detail)
        return report

    def _only(self, query: UsageQuery) -> UsageFilter:
        of = "" if query.of == OWN_IMAGE else query.of
        if query.by == "account":
            owners = frozenset(user for user, name in self._defaults().items() if name == query.of)
            return UsageFilter(query.by, "" if of == NO_ACCOUNT else of, owners)
        return UsageFilter(query.by, of)

    def _defaults(self) -> Mapping[str, str]:
        limits = self._status.reported().limits
        return limits.default_accounts if limits else {}

    def _name(self, by: By) -> Callable[[Share], str]:
        """The function that names a report's groups."""
        match by:
            case "account":
                defaults = self._defaults()
                return lambda share: share.key or defaults.get(share.owner) or NO_ACCOUNT
            case "environment":
                return lambda share: share.key or OWN_IMAGE
            case "app":  # the audit log names it "JupyterLab of tidy-crane"
                return lambda share: share.key.rpartition(" of ")[0] or share.key
            case "person":
                return lambda share: share.owner
