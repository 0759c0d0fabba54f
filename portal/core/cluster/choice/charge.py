"""What a waiting job is charged to, in words: its account, its QOS, its reservation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from portal.core.cluster.choice.access import entry_of, options_in_effect
from portal.core.cluster.choice.account_use import forgotten
from portal.core.cluster.limits import Association, Limits, Minutes, Qos, Tres, line_of
from portal.core.slurm_options import SlurmOptions


@dataclass(frozen=True)
class Charge:
    """The account and the QOS of one job, as far as they are known, and whose limits it meets."""

    account: str = ""
    above: tuple[str, ...] | None = None
    """Accounts above it that have limits on all jobs together; None if that is not known."""
    account_limited: bool = True
    """Whether the account itself has such limits."""
    qos: tuple[str, ...] = ()
    """The QOS whose limits apply: the job's, its partition's, or both."""
    reservation: str = ""
    reservation_active: bool = False
    constraint: str = ""
    forgotten: str = ""
    """When what was used stops counting, in one sentence; "" if that is not known."""
    by_time_limit: bool = False
    """Whether Slurm starts only what fits into the rest of a budget ("safe" is enforced)."""

    @property
    def accounts(self) -> str:
        """Whose limit on an account's jobs together it is, as the subject of a sentence."""
        if not self.account:
            return "Your group"
        if self.above is None:
            return f"Your account {self.account}, or one above it,"
        if not self.above:
            return f"Your account {self.account}"
        above = " or ".join(self.above)
        if not self.account_limited:
            return f"Account {above}, above your account {self.account},"
        return f"Your account {self.account}, or {above} above it,"

    @property
    def all_qos(self) -> str:
        """The QOS in words; "" if none is known."""
        return f"QOS {' or '.join(self.qos)}" if self.qos else ""


NOT_KNOWN = Charge()


def charge_of(user: str, partition: str, options: SlurmOptions, limits: Limits | None) -> Charge:
    """What a user's job with these options is charged to; Slurm's defaults where none is chosen."""
    chosen = Charge(
        account=options.account,
        qos=(options.qos,) if options.qos else (),
        reservation=options.reservation,
        constraint=options.constraint,
    )
    if limits is None:
        return chosen
    account, qos = options_in_effect(user, partition, options, limits)
    line = list(_line(user, account, limits))
    held = [one for one in limits.reservations if one.name == options.reservation]
    return replace(
        chosen,
        account=account,
        above=tuple(one.account for one in line if one.account != account and _limited(one)),
        account_limited=any(one.account == account and _limited(one) for one in line),
        qos=_limited_qos(qos, entry_of(partition, limits).qos, limits),
        reservation_active=any(one.active for one in held),
        forgotten=forgotten(limits),
        by_time_limit="safe" in limits.enforced,
    )


def _line(user: str, account: str, limits: Limits) -> Iterator[Association]:
    """The user's association, its account and those above it."""
    yield from (one for one in limits.users.get(user, ()) if one.account == account)
    yield from line_of(account, limits)


def _limited(one: Association) -> bool:
    counts = one.group_jobs, one.group_submitted
    return one.group != Tres() or one.total != Minutes() or counts != (None, None)


def _limited_qos(of_job: str, of_partition: str, limits: Limits) -> tuple[str, ...]:
    """Those of the two QOS that set a limit; both if none is known to."""
    names = tuple(dict.fromkeys(filter(None, (of_job, of_partition))))
    known = {one.name: one for one in limits.qos}
    found = tuple(name for name in names if name in known and _sets_limits(known[name]))
    return found or names


def _sets_limits(one: Qos) -> bool:
    bare = replace(one, flags=(), used=Minutes(), description="", preempt=(), preempt_mode="")
    return bare != Qos(one.name)
